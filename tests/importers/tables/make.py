"""Write the tables of this folder with the packages that write them for their users.

    python make.py pandas | datasets | deepeval | langchain | llama-index | ragas

in a throwaway environment with that package (`uv venv` and `uv pip install pandas datasets deepeval langchain-core
llama-index-core ragas`; no telemetry: DEEPEVAL_TELEMETRY_OPT_OUT=YES, RAGAS_DO_NOT_TRACK=true). The packages are no
dependencies of adjudge. README.md has the versions that wrote what is here.
"""

import json
import os
import sys
from pathlib import Path

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "RAGAS_DO_NOT_TRACK": "true"}

HERE = Path(__file__).parent
QUESTIONS = ["How many moons has Mars?", 'Who wrote "Emma"?']
CONTEXTS = [
    ["Mars has two moons, Phobos and Deimos.", "Mars is red."],
    ["It's Jane Austen's novel of 1815.", "Emma is a novel, by 'A Lady'\nin three volumes."],
]
ANSWERS = ["Mars has two moons.", "Jane Austen."]
REFERENCES = ["Two.", "Jane Austen"]


def write_pandas() -> None:
    """A DataFrame with lists in its cells, with its index; and the same with numpy's arrays, as Parquet gives them."""
    import numpy as np
    import pandas as pd

    columns = {
        "user_input": QUESTIONS,
        "retrieved_contexts": CONTEXTS,
        "response": ANSWERS,
        "reference": REFERENCES,
    }
    frame = pd.DataFrame({**columns, "faithfulness": [1.0, 0.5]})
    frame.to_csv(HERE / "pandas_index.csv")
    frame["retrieved_contexts"] = [np.array(texts, dtype=object) for texts in CONTEXTS]
    frame.to_csv(HERE / "pandas_numpy.csv", index=False)


def write_datasets() -> None:
    """RAGAS's columns before 0.2, as a data set of Hugging Face writes them."""
    from datasets import Dataset

    columns = {"question": QUESTIONS, "contexts": CONTEXTS, "answer": ANSWERS, "ground_truth": REFERENCES}
    found = Dataset.from_dict(columns)
    found.to_csv(str(HERE / "datasets.csv"))
    found.to_json(str(HERE / "datasets.jsonl"))
    found.to_parquet(str(HERE / "datasets.parquet"))


def write_deepeval() -> None:
    """Test cases of DeepEval, in its three formats."""
    from deepeval.dataset import EvaluationDataset, Golden

    rows = zip(QUESTIONS, CONTEXTS, ANSWERS, REFERENCES, strict=True)
    goldens = [
        Golden(input=question, retrieval_context=texts, actual_output=answer, expected_output=reference)
        for question, texts, answer, reference in rows
    ]
    for ending in ("json", "jsonl", "csv"):
        EvaluationDataset(goldens=goldens).save_as(ending, directory=str(HERE), file_name="deepeval")


def write_langchain() -> None:
    """Results of a retrieval chain (input, context, answer), and of RetrievalQA (query, result, source_documents)."""
    from langchain_core.documents import Document
    from langchain_core.load import dumpd

    with (HERE / "langchain_chain.jsonl").open("w") as chain, (HERE / "langchain_qa.jsonl").open("w") as qa:
        for question, texts, answer in zip(QUESTIONS, CONTEXTS, ANSWERS, strict=True):
            documents = [
                Document(page_content=text, id=f"d{n}", metadata={"source": "a.pdf", "date": "1877-08-12"})
                for n, text in enumerate(texts)
            ]
            row = {
                "input": question,
                "context": [found.model_dump() for found in documents],
                "answer": answer,
            }
            chain.write(json.dumps(row) + "\n")
            row = {"query": question, "result": answer, "source_documents": dumpd(documents)}
            qa.write(json.dumps(row) + "\n")


def write_llama_index() -> None:
    """Responses with their source nodes."""
    from llama_index.core.base.response.schema import Response
    from llama_index.core.schema import NodeWithScore, TextNode

    with (HERE / "llama_index.jsonl").open("w") as file:
        for question, texts, answer in zip(QUESTIONS, CONTEXTS, ANSWERS, strict=True):
            nodes = [
                NodeWithScore(node=TextNode(text=text, id_=f"n{n}"), score=0.9 - n / 10)
                for n, text in enumerate(texts)
            ]
            found = Response(response=answer, source_nodes=nodes)
            row = {"query": question, "response": found.response}
            row["contexts"] = [node.to_dict() for node in found.source_nodes]
            file.write(json.dumps(row) + "\n")


def write_ragas() -> None:
    """An EvaluationDataset of RAGAS as CSV and as JSON Lines."""
    from ragas import EvaluationDataset

    rows = zip(QUESTIONS, CONTEXTS, ANSWERS, REFERENCES, strict=True)
    found = EvaluationDataset.from_list(
        [
            {"user_input": question, "retrieved_contexts": texts, "response": answer, "reference": reference}
            for question, texts, answer, reference in rows
        ]
    )
    found.to_csv(str(HERE / "ragas.csv"))
    found.to_jsonl(str(HERE / "ragas.jsonl"))


if __name__ == "__main__":
    globals()[f"write_{sys.argv[1].replace('-', '_')}"]()
