"""A server that speaks as much of OpenAI's API as is used here, by its documentation, with a real
model behind it that is fed one sequence at a time.

It is strict: a field that the kind of server does not know is refused with status 400, so that a
request which a real one would refuse does not pass. `plain` is what all have in common, and keeps
quiet about end tokens as OpenAI does; `vllm` has that server's own fields and lists all tokens.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

MODEL = "model"
CONTEXT = 300
FIELDS = {
    "model",
    "n",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "seed",
    "stop",
    "logprobs",
}
OF_PATH = {"/v1/completions": {"prompt"}, "/v1/chat/completions": {"messages", "top_logprobs"}}
OF_VLLM = {
    "top_k", "min_p", "repetition_penalty", "return_tokens_as_token_ids", "allowed_token_ids",
    "chat_template_kwargs", "continue_final_message", "add_generation_prompt",
    "skip_special_tokens",
}  # fmt: skip


@dataclass
class Reply:
    """An answer that a test wants instead of a real one."""

    status: int = 200
    body: Any = None
    """Sent as JSON, or as it is if it is bytes."""
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    """To wait before it."""


class Refusal(Exception):
    pass


class Service:
    """A model, what it is asked, and what it is to answer instead."""

    def __init__(self, folder: Path, kind: str = "plain") -> None:
        self.kind = kind
        self.model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.url = ""
        self.key: str | None = None
        """What it demands."""
        self.planned: list[Reply] = []
        """Of the next POSTs, in order."""
        self.change: Callable[[dict[str, Any]], None] | None = None
        """Applied to each choice it gives."""
        self.context = CONTEXT
        """Tokens that a prompt and its reply may have."""
        self.refuses: Callable[[dict[str, Any]], Reply | None] | None = None
        """Whether it refuses a request for its options: one of the functions below."""
        self.counts: Callable[[dict[str, Any]], Any] = lambda usage: usage
        """What it tells of the tokens in the place of the truth."""
        self.one_each = False
        """Give one sample whatever is asked for."""
        self.asked: list[dict[str, Any]] = []
        """The bodies of all POSTs."""
        self.seen_keys: list[str] = []
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()

    def models(self) -> dict[str, Any]:
        about = {"owned_by": "vllm", "max_model_len": self.context} if self.kind == "vllm" else {}
        return {"data": [{"id": MODEL, "object": "model", "owned_by": "me", **about}]}

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        known = FIELDS | OF_PATH[path] | (OF_VLLM if self.kind == "vllm" else set())
        if unknown := body.keys() - known:
            raise Refusal(f"unknown fields {sorted(unknown)}")
        ids = self._ids(body)
        count = len(ids) + _length(body)
        if count > self.context:
            raise Refusal(
                f"This model's maximum context length is {self.context} tokens. However, you "
                f"requested {count} tokens"
            )
        n = 1 if self.one_each else body.get("n", 1)
        chat = "messages" in body
        choices = [self._choice(ids, body, index, chat=chat) for index in range(n)]
        spent = sum(choice.pop("spent") for choice in choices)
        if self.change:
            for choice in choices:
                self.change(choice)
        usage = {"prompt_tokens": len(ids), "completion_tokens": spent}
        return {"choices": choices, "usage": self.counts(usage)}

    def _ids(self, body: dict[str, Any]) -> list[int]:
        if "messages" not in body:
            prompt = body["prompt"]
            return list(self.tokenizer(prompt).input_ids if isinstance(prompt, str) else prompt)
        messages, last = body["messages"], ""
        if messages[-1]["role"] == "assistant":
            if self.kind == "vllm" and not body.get("continue_final_message"):
                raise Refusal("the last turn is the assistant's")
            last = messages[-1]["content"]
            messages = messages[:-1]
        text = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        return list(self.tokenizer(text + last, add_special_tokens=False).input_ids)

    def _choice(
        self, prompt: list[int], body: dict[str, Any], index: int, *, chat: bool
    ) -> dict[str, Any]:
        """Tokens are drawn until the text holds a stop string, or the end."""
        stops = body.get("stop", [])
        random = torch.Generator().manual_seed(body.get("seed", 0) + index)
        ids: list[int] = []
        rows: list[torch.Tensor] = []
        text, finish, stopped = "", "length", None
        for _ in range(_length(body)):
            with torch.inference_mode():
                logits = self.model(torch.tensor([prompt + ids])).logits[0, -1].double()
            rows.append(torch.log_softmax(logits, dim=-1))
            ids.append(self._draw(logits, body, random))
            if ids[-1] == self.tokenizer.eos_token_id:
                finish = "stop"
                break
            text = self.tokenizer.decode(ids, skip_special_tokens=True)
            if found := [stop for stop in stops if stop in text]:
                stopped = min(found, key=text.index)
                text, finish = text[: text.index(stopped)], "stop"
                break
        told: dict[str, Any] = {"index": index, "finish_reason": finish, "spent": len(ids)}
        if self.kind == "vllm":
            told["stop_reason"] = stopped
        elif finish == "stop":  # what ended the text is not listed
            while ids and len(self.tokenizer.decode(ids[:-1], skip_special_tokens=True)) >= len(
                text
            ):
                ids.pop()
        told |= {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        wanted = body.get("logprobs")
        if wanted is True:
            wanted = body.get("top_logprobs", 0)
        if wanted is not None:
            by_id = body.get("return_tokens_as_token_ids", False)
            told["logprobs"] = self._told(ids, rows, wanted, by_id=by_id, chat=chat)
        return told

    def _draw(self, logits: torch.Tensor, body: dict[str, Any], random: torch.Generator) -> int:
        if allowed := body.get("allowed_token_ids"):
            return int(allowed[int(logits[allowed].argmax())])
        temperature = body.get("temperature", 1.0)
        if temperature == 0:
            return int(logits.argmax())
        odds = torch.softmax(logits / temperature, dim=-1)
        return int(torch.multinomial(odds, 1, generator=random))

    def _told(
        self, ids: list[int], rows: list[torch.Tensor], wanted: int, *, by_id: bool, chat: bool
    ) -> dict[str, Any]:
        def spelled(token: int) -> str:
            return f"token_id:{token}" if by_id else str(self.tokenizer.decode([token]))

        def entry(token: int, row: torch.Tensor) -> dict[str, Any]:
            return {
                "token": spelled(token),
                "logprob": float(row[token]),
                "bytes": list(self.bytes_of(token)),
            }

        tops = [row.topk(wanted).indices.tolist() for row in rows[: len(ids)]]
        if chat:
            return {
                "content": [
                    entry(token, row) | {"top_logprobs": [entry(other, row) for other in top]}
                    for token, row, top in zip(ids, rows, tops, strict=False)
                ]
            }
        return {
            "tokens": [spelled(token) for token in ids],
            "token_logprobs": [float(row[token]) for token, row in zip(ids, rows, strict=False)],
            "top_logprobs": [
                {spelled(other): float(row[other]) for other in top}
                for row, top in zip(rows, tops, strict=False)
            ],
        }

    def bytes_of(self, token: int) -> bytes:
        """The bytes of a byte-level token: its letters stand for them."""
        letters = self.tokenizer.convert_ids_to_tokens(token) or ""
        if token in self.tokenizer.all_special_ids or token in self.tokenizer.added_tokens_decoder:
            return str(letters).encode()
        return bytes(_BYTES[letter] for letter in letters)


def _length(body: dict[str, Any]) -> int:
    """Tokens that a reply may have."""
    return int(body.get("max_completion_tokens", body.get("max_tokens", CONTEXT)))


def openai_error(message: str, param: str | None, code: str | None, status: int = 400) -> Reply:
    told = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return Reply(status=status, body={"error": told})


def reasoning(body: dict[str, Any]) -> Reply | None:
    """As OpenAI's reasoning models: one temperature, no log-probabilities, the new limit."""
    if "max_tokens" in body:
        said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        said += "'max_completion_tokens' instead."
        return openai_error(said, "max_tokens", "unsupported_parameter")
    if body.get("temperature", 1) != 1:
        said = f"Unsupported value: 'temperature' does not support {body['temperature']} with this "
        said += "model. Only the default (1) value is supported."
        return openai_error(said, "temperature", "unsupported_value")
    for name in ("stop", "top_p"):
        if name in body:
            said = f"Unsupported parameter: '{name}' is not supported with this model."
            return openai_error(said, name, "unsupported_parameter")
    if "logprobs" in body:
        said = "You are not allowed to request logprobs from this model"
        return openai_error(said, None, None, status=403)
    return None


def forbidding(*names: str) -> Callable[[dict[str, Any]], Reply | None]:
    """As Mistral tells that it does not know fields, all at once and with their values."""

    def refuse(body: dict[str, Any]) -> Reply | None:
        told = [
            {
                "type": "extra_forbidden",
                "loc": ["body", name],
                "msg": "Extra inputs are not permitted",
                "input": body[name],
            }
            for name in names
            if name in body
        ]
        error = {"object": "error", "message": {"detail": told}, "param": None, "code": None}
        return Reply(status=422, body=error) if told else None

    return refuse


def either(body: dict[str, Any]) -> Reply | None:
    """As Anthropic, which also wants the last word to be the user's."""
    if "temperature" in body and "top_p" in body:
        said = "`temperature` and `top_p` cannot both be specified for this model. Please use only "
        return Reply(status=400, body={"error": {"message": said + "one."}})
    if body["messages"][-1]["role"] == "assistant":
        said = "This model does not support assistant message prefill. The conversation must end "
        return Reply(status=400, body={"error": {"message": said + "with a user message."}})
    return None


def at_most(count: int) -> Callable[[dict[str, Any]], Reply | None]:
    """As Azure limits the alternatives."""

    def refuse(body: dict[str, Any]) -> Reply | None:
        if body.get("top_logprobs", 0) <= count:
            return None
        said = f"Invalid value for 'top_logprobs': must be less than or equal to {count}."
        return openai_error(said, "top_logprobs", None)

    return refuse


def without(*names: str) -> Callable[[dict[str, Any]], Reply | None]:
    """One text for several options, whichever of them it is."""

    def refuse(body: dict[str, Any]) -> Reply | None:
        said = f"This endpoint is served without {' and '.join(names)}"
        return Reply(status=400, body={"detail": said}) if body.keys() & set(names) else None

    return refuse


def _byte_letters() -> dict[str, int]:
    """GPT-2's alphabet: printable bytes stand for themselves, the others for letters from 256."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {chr(byte): byte for byte in printable}
    others = [byte for byte in range(256) if byte not in printable]
    return letters | {chr(256 + at): byte for at, byte in enumerate(others)}


_BYTES = _byte_letters()


@contextmanager
def running(service: Service) -> Iterator[Service]:
    """Serve on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path != "/v1/models":
                self.send(Reply(status=404, body={"detail": "Not Found"}))
            elif self.allowed():
                self.send(Reply(body=service.models()))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with service.lock:
                service.asked.append(body)
                service.at_once += 1
                service.most_at_once = max(service.most_at_once, service.at_once)
                planned = service.planned.pop(0) if service.planned else None
                if planned is None and service.refuses:
                    planned = service.refuses(body)
            try:
                if self.path not in OF_PATH:
                    self.send(Reply(status=404, body={"detail": "Not Found"}))
                elif planned is None and self.allowed():
                    self.send(Reply(body=service.answer(self.path, body)))
                elif planned is not None:
                    time.sleep(planned.seconds)
                    self.send(planned)
            except Refusal as refusal:
                self.send(Reply(status=400, body={"error": {"message": str(refusal)}}))
            finally:
                with service.lock:
                    service.at_once -= 1

        def allowed(self) -> bool:
            service.seen_keys.append(self.headers.get("authorization", ""))
            if service.key is None or self.headers.get("authorization") == f"Bearer {service.key}":
                return True
            said = f"Incorrect API key provided: {self.headers.get('authorization', '')[-9:]}"
            self.send(
                Reply(status=401, body={"error": {"message": said, "code": "invalid_api_key"}})
            )
            return False

        def send(self, reply: Reply) -> None:
            data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            try:
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except (BrokenPipeError, ConnectionResetError):
                pass  # who asked is no longer waiting

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    service.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
