"""A checkpoint's configuration can name code on the hub, which transformers loads where the package
`kernels` is installed. Here a package of that name writes down what it is asked for."""

import json
import subprocess
import sys
from pathlib import Path

from tests import encoders, models
from tests.runtime.rerankers.test_cross_encoder import save as cross_encoder
from tests.tracing.entailments.test_nli import save as classifier

PACKAGE = """
import types

def get_kernel(*named, **_):
    print("asked for", *named, flush=True)
    raise RuntimeError("no kernel here")

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return types.SimpleNamespace if name[0].isupper() else (lambda *_, **__: lambda value: value)
"""
LOADING = """
import sys
sys.path.insert(0, ".")
from hopscope.runtime.encoders import encoder, naming
from hopscope.runtime.readers import hf
from hopscope.runtime.rerankers import cross_encoder
from hopscope.runtime.similarities import bertscore
from hopscope.tracing.entailments import nli

hf.build(model="reader")
cross_encoder.build(model="cross-encoder")
nli.build(model="nli")
bertscore.build(model="bert")
encoder.load(naming.parse("contriever:bert")).queries(["who"])
encoder.load(naming.parse("ance:ance")).queries(["who"])
print("loaded", flush=True)

from transformers import AutoModelForCausalLM
try:
    AutoModelForCausalLM.from_pretrained("reader", trust_remote_code=False)
except ValueError as error:
    print(error)
"""
NAMED = {
    "attn_implementation": "kernels-community/flash-attn3",
    "experts_implementation": "sonicmoe",
    "transformers_weights": "adapter_model.bin",
}


def test_kernels_that_a_configuration_names_are_not_loaded(tmp_path: Path) -> None:
    """Every kind of model is loaded, with the attention that torch brings; transformers alone
    would ask for the kernel, which shows that the package stands where it is looked for."""
    models.tiny_llama(tmp_path / "reader")
    cross_encoder(tmp_path / "cross-encoder", "bert")
    classifier(tmp_path / "nli", "bert")
    encoders.bert(tmp_path / "bert")
    encoders.ance(tmp_path / "ance")
    for path in tmp_path.glob("*/config.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | NAMED))
    (tmp_path / "kernels.py").write_text(PACKAGE)
    about = tmp_path / "kernels-0.18.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: kernels\nVersion: 0.18.2\n")
    done = subprocess.run(
        [sys.executable, "-c", LOADING], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[:2] == [
        "loaded",
        "asked for kernels-community/flash-attn3",
    ], done.stderr
