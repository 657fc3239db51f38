"""DSPy's callbacks, as recorded calls.

    with hopscope.record_dspy("runs.db") as recorded:
        program(question="Who founded it?")
    print(recorded.stored)

`dspy.Retrieve` and tools search; other functions search under `@hopscope.retrieval`.
"""

from typing import Any

from hopscope.api.recording import attributes, replies
from hopscope.api.recording.frameworks.calls import Calls
from hopscope.runtime.errors import MissingExtraError
from hopscope.runtime.spans import keys

try:
    import dspy
    from dspy.utils.callback import ACTIVE_CALL_ID, BaseCallback
except ImportError:
    raise MissingExtraError("recording of DSPy", "dspy") from None


class Recorded(Calls):
    """The recorded runs of DSPy; `close` ends the recording."""

    def begin_listening(self) -> None:
        """Hear what DSPy tells from now on."""
        self._callback = _Callback(self)
        dspy.configure(callbacks=[*dspy.settings.get("callbacks", []), self._callback])

    def close(self) -> None:
        """Hear no more, and close the store, unless it was given open."""
        heard = dspy.settings.get("callbacks", [])
        dspy.configure(callbacks=[each for each in heard if each is not self._callback])
        super().close()


class _Callback(BaseCallback):  # type: ignore[misc]  # DSPy need not be there
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._models: dict[str, Any] = {}
        """The models of calls that go on."""

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        parent, name = ACTIVE_CALL_ID.get(), type(instance).__name__
        told: dict[str, Any] = {}
        if isinstance(instance, dspy.Retrieve):
            args = (*inputs.get("args", ()), *inputs.get("kwargs", {}).values(), "")
            told = attributes.search(str(inputs.get("kwargs", {}).get("query", args[0])))
        elif self._calls.place(parent) is None:
            told = {keys.INPUT_VALUE: replies.text(inputs)}
        self._calls.begin(call_id, parent, name, told)

    def on_module_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        told: dict[str, Any] = {}
        passages = getattr(outputs, "passages", None)
        place = self._calls.place(call_id)
        searched = place is not None and keys.RETRIEVAL_QUERY in place.span.attributes
        if searched and isinstance(passages, list):
            told = attributes.found(attributes.passages(passages))
        elif self._calls.is_root(call_id) and outputs is not None:
            told = {keys.OUTPUT_VALUE: replies.text(_fields(outputs))}
        self._calls.end(call_id, told, exception)

    def on_tool_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        arguments = inputs.get("kwargs", inputs)
        name = str(getattr(instance, "name", None) or "tool")
        self._calls.begin(call_id, ACTIVE_CALL_ID.get(), name, attributes.called(name, arguments))

    def on_tool_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        self._calls.end(call_id, attributes.returned(replies.text(outputs)), exception)

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self._models[call_id] = instance
        prompt = inputs.get("messages") or inputs.get("prompt") or ""
        told = attributes.asked(replies.prompt(prompt), str(getattr(instance, "model", "")))
        self._calls.begin(call_id, ACTIVE_CALL_ID.get(), type(instance).__name__, told)

    def on_lm_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        model = self._models.pop(call_id, None)
        first = outputs[0] if isinstance(outputs, list) and outputs else ""
        reply = replies.read(first)
        for entry in reversed(getattr(model, "history", ())):
            if entry.get("outputs") is outputs or entry.get("outputs") == outputs:
                counted = replies.read({"usage": entry.get("usage"), "text": ""})
                reply = reply._replace(
                    input_tokens=counted.input_tokens, output_tokens=counted.output_tokens
                )
                break
        self._calls.end(call_id, attributes.replied(reply), exception)


def _fields(outputs: Any) -> Any:
    """The fields of a prediction."""
    plain = getattr(outputs, "toDict", None)
    return plain() if callable(plain) else outputs
