"""Models of `transformers` at small sizes with random weights: outputs, losses and gradients as eager's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from stepwell.tests.models.accuracy import check

transformers = pytest.importorskip("transformers", reason="the models are those of transformers")

Built = tuple[torch.nn.Module, dict[str, Any]]


def _tokens(vocabulary: int, length: int = 12, batch: int = 2) -> dict[str, Any]:
    return {"input_ids": torch.randint(0, vocabulary, (batch, length))}


def gpt2() -> Built:
    config = transformers.GPT2Config(
        vocab_size=101, n_positions=32, n_embd=32, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
    )
    return transformers.GPT2LMHeadModel(config), {**_tokens(101), "use_cache": False}


def llama() -> Built:
    config = transformers.LlamaConfig(
        vocab_size=101, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config), {**_tokens(101), "use_cache": False}


def bert() -> Built:
    config = transformers.BertConfig(
        vocab_size=101, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    mask = torch.ones(2, 12, dtype=torch.int64)
    mask[1, 7:] = 0
    return transformers.BertModel(config), {**_tokens(101), "attention_mask": mask}


def vit() -> Built:
    config = transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=32, patch_size=8,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return transformers.ViTModel(config), {"pixel_values": torch.randn(2, 3, 32, 32)}


def resnet() -> Built:
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
    return transformers.ResNetModel(config), {"pixel_values": torch.randn(2, 3, 32, 32)}


def t5() -> Built:
    config = transformers.T5Config(
        vocab_size=101, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2, dropout_rate=0.0, use_cache=False
    )
    decoder = {"decoder_input_ids": torch.randint(0, 101, (2, 7))}
    return transformers.T5Model(config), {**_tokens(101), **decoder}


def mamba() -> Built:
    config = transformers.MambaConfig(
        vocab_size=101, hidden_size=32, state_size=4, num_hidden_layers=2, use_cache=False
    )
    return transformers.MambaModel(config), _tokens(101, length=6)


MODELS: dict[str, Callable[[], Built]] = {
    builder.__name__: builder for builder in (gpt2, llama, bert, vit, resnet, t5, mamba)
}


@pytest.mark.parametrize("train", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("name", MODELS)
def test_results_are_as_accurate_as_eager(name: str, train: bool) -> None:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of transformers itself; ours are errors below
        module, inputs = MODELS[name]()
    module.train(train)
    check(module, inputs, train=train)
