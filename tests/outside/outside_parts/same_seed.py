"""Whether the reader gives two questions of the same text the same answer."""

from hopscope.lab.suites.figures import table
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.table_forms.table import Table
from hopscope.runtime.types import GenerationRequest, Measurement, Message, Prompt


def build(inputs: SuiteInputs) -> list[Table]:
    prompt = Prompt(messages=(Message(role="user", content="Who?"),))
    request = GenerationRequest(prompt=prompt, seed=inputs.seed)
    [[one], [other]] = inputs.reader.generate([request, request])
    same = Measurement(value=float(one.text == other.text), n=1)
    columns = {"reader": "reader", "same": "same"}
    return [table("same_seed", "Same", columns, [{"reader": inputs.reader.name, "same": same}])]
