"""Tiny ONNX classifiers, made here: what they answer is known by hand."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

WORDS = ["[PAD]", "[UNK]", "[SEP]", "yes", "no", "maybe", "tea", "is", "hot", "cold", "filler"]


def folder(
    path: Path,
    weights: Sequence[Sequence[float]],
    names: Sequence[str] = (),
    classes: Any = None,
    most: int = 64,
    kind: int = TensorProto.INT64,
) -> Path:
    """A model whose logits are the sums of `weights[word]` over all tokens: `weights` maps WORDS to class numbers."""
    path.mkdir(parents=True, exist_ok=True)
    _tokenizer().save(str(path / "tokenizer.json"))
    config = {
        "id2label": {str(i): n for i, n in enumerate(names)},
        "max_position_embeddings": most,
        "pad_token_id": 0,
    }
    (path / "config.json").write_text(json.dumps(config))
    if classes is not None:
        (path / "classes.json").write_text(json.dumps(classes))
    table = np.array(weights, dtype=np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["each"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["seen"]),
        helper.make_node("Mul", ["each", "seen"], ["real"]),
        helper.make_node("ReduceSum", ["real", "middle"], ["logits"], keepdims=0),
    ]
    integers = [helper.make_tensor_value_info(n, kind, ["b", "s"]) for n in ("input_ids", "attention_mask")]
    graph = helper.make_graph(
        nodes,
        "tiny",
        integers,
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["b", table.shape[1]])],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.array([2]), "last"),
            numpy_helper.from_array(np.array([1]), "middle"),
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, str(path / "model.onnx"))
    return path


def by_word(**numbers: Sequence[float]) -> list[list[float]]:
    """Weights for WORDS, zeros for those not named."""
    size = len(next(iter(numbers.values())))
    return [list(numbers.get(word, [0.0] * size)) for word in WORDS]


def _tokenizer() -> Tokenizer:
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="$A [SEP]", pair="$A [SEP] $B:1 [SEP]:1", special_tokens=[("[SEP]", 2)]
    )
    return made
