"""The zoo: small models with random weights, one builder each, from `transformers` and of plain `torch.nn`.

A builder takes a batch size and gives a module without dropout, with inputs of that batch by keyword.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional as F

Built = tuple[nn.Module, dict[str, Any]]
Builder = Callable[[int], Built]

VOCABULARY = 101
NO_DROPOUT: dict[str, Any] = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
ENCODER: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
DECODER: dict[str, Any] = {**ENCODER, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": VOCABULARY}


def _tokens(batch: int, length: int = 12) -> dict[str, Any]:
    return {"input_ids": torch.randint(1, VOCABULARY, (batch, length))}


def _causal(batch: int, length: int = 12) -> dict[str, Any]:
    return {**_tokens(batch, length), "use_cache": False}


def _image(batch: int, size: int = 32) -> dict[str, Any]:
    return {"pixel_values": torch.randn(batch, 3, size, size)}


# -- decoders ----------------------------------------------------------------------------------------


def gpt2(batch: int) -> Built:
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=32, n_embd=32, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config), _causal(batch)


def llama(batch: int) -> Built:
    config = transformers.LlamaConfig(**DECODER, max_position_embeddings=64)
    return transformers.LlamaForCausalLM(config), _causal(batch)


def mistral(batch: int) -> Built:
    config = transformers.MistralConfig(**DECODER, max_position_embeddings=64, sliding_window=4)
    return transformers.MistralForCausalLM(config), _causal(batch)


def qwen2(batch: int) -> Built:
    config = transformers.Qwen2Config(**DECODER, max_position_embeddings=64)
    return transformers.Qwen2ForCausalLM(config), _causal(batch)


def gemma(batch: int) -> Built:
    config = transformers.GemmaConfig(**DECODER, head_dim=8, max_position_embeddings=64)
    return transformers.GemmaForCausalLM(config), _causal(batch)


def phi(batch: int) -> Built:
    config = transformers.PhiConfig(**{**DECODER, "num_key_value_heads": 4}, max_position_embeddings=64)
    return transformers.PhiForCausalLM(config), _causal(batch)


def gpt_neox(batch: int) -> Built:
    config = transformers.GPTNeoXConfig(**ENCODER, vocab_size=VOCABULARY, max_position_embeddings=64)
    return transformers.GPTNeoXForCausalLM(config), _causal(batch)


def opt(batch: int) -> Built:
    config = transformers.OPTConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, ffn_dim=64, dropout=0.0,
        max_position_embeddings=64, word_embed_proj_dim=32,
    )  # fmt: skip
    return transformers.OPTForCausalLM(config), _causal(batch)


def bloom(batch: int) -> Built:
    config = transformers.BloomConfig(
        vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=2, hidden_dropout=0.0, attention_dropout=0.0
    )
    return transformers.BloomForCausalLM(config), _causal(batch)


def mamba(batch: int) -> Built:
    config = transformers.MambaConfig(
        vocab_size=VOCABULARY, hidden_size=32, state_size=4, num_hidden_layers=2, use_cache=False
    )
    return transformers.MambaModel(config), _tokens(batch, length=6)


# -- encoders ----------------------------------------------------------------------------------------


def bert(batch: int) -> Built:
    config = transformers.BertConfig(**ENCODER, **NO_DROPOUT, vocab_size=VOCABULARY)
    mask = torch.ones(batch, 12, dtype=torch.int64)
    mask[-1, 7:] = 0
    return transformers.BertModel(config), {**_tokens(batch), "attention_mask": mask}


def roberta(batch: int) -> Built:
    config = transformers.RobertaConfig(**ENCODER, **NO_DROPOUT, vocab_size=VOCABULARY, max_position_embeddings=64)
    return transformers.RobertaForMaskedLM(config), _tokens(batch)


def albert(batch: int) -> Built:
    config = transformers.AlbertConfig(**ENCODER, **NO_DROPOUT, vocab_size=VOCABULARY, embedding_size=16)
    return transformers.AlbertModel(config), _tokens(batch)


def deberta(batch: int) -> Built:
    config = transformers.DebertaV2Config(
        **ENCODER, **NO_DROPOUT, vocab_size=VOCABULARY, relative_attention=True, max_relative_positions=8,
        pos_att_type=["p2c", "c2p"],
    )  # fmt: skip
    return transformers.DebertaV2Model(config), _tokens(batch)


def t5(batch: int) -> Built:
    config = transformers.T5Config(
        vocab_size=VOCABULARY, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2, dropout_rate=0.0,
        use_cache=False,
    )  # fmt: skip
    decoder = {"decoder_input_ids": torch.randint(1, VOCABULARY, (batch, 7))}
    return transformers.T5Model(config), {**_tokens(batch), **decoder}


def bart(batch: int) -> Built:
    config = transformers.BartConfig(
        vocab_size=VOCABULARY, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, dropout=0.0, max_position_embeddings=64,
        use_cache=False,
    )  # fmt: skip
    decoder = {"decoder_input_ids": torch.randint(1, VOCABULARY, (batch, 7))}
    return transformers.BartModel(config), {**_tokens(batch), **decoder}


def whisper(batch: int) -> Built:
    config = transformers.WhisperConfig(
        vocab_size=VOCABULARY, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=8, max_source_positions=16,
        max_target_positions=16, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        use_cache=False,
    )  # fmt: skip
    inputs = {"input_features": torch.randn(batch, 8, 32), "decoder_input_ids": torch.randint(1, 101, (batch, 7))}
    return transformers.WhisperModel(config), inputs


# -- images ------------------------------------------------------------------------------------------


def vit(batch: int) -> Built:
    config = transformers.ViTConfig(**ENCODER, **NO_DROPOUT, image_size=32, patch_size=8)
    return transformers.ViTModel(config), _image(batch)


def swin(batch: int) -> Built:
    config = transformers.SwinConfig(
        image_size=32, patch_size=4, embed_dim=16, depths=[2, 1], num_heads=[2, 2], window_size=4, drop_path_rate=0.0
    )
    return transformers.SwinModel(config), _image(batch)


def resnet(batch: int) -> Built:
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
    return transformers.ResNetModel(config), _image(batch)


def regnet(batch: int) -> Built:
    config = transformers.RegNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], groups_width=4, layer_type="y"
    )
    return transformers.RegNetModel(config), _image(batch)


def convnext(batch: int) -> Built:
    config = transformers.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2)
    return transformers.ConvNextModel(config), _image(batch)


def mobilenet(batch: int) -> Built:
    """On images so large that its last batch norms have more than two numbers, whose deviation may be nothing."""
    config = transformers.MobileNetV2Config(depth_multiplier=0.25, image_size=96, classifier_dropout_prob=0.0)
    return transformers.MobileNetV2Model(config), _image(batch, 96)


def clip(batch: int) -> Built:
    text = {**ENCODER, "vocab_size": VOCABULARY, "max_position_embeddings": 16, "eos_token_id": 2}
    vision = {**ENCODER, "image_size": 32, "patch_size": 8}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    return transformers.CLIPModel(config), {**_tokens(batch), **_image(batch)}


# -- plain torch.nn ----------------------------------------------------------------------------------


class UNet(nn.Module):
    """Two levels down and up, with group norm, nearest upsampling, a transposed convolution and a skip."""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Conv2d(3, 8, 3, padding=1)
        self.down = nn.Sequential(nn.GroupNorm(4, 8), nn.SiLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1))
        self.middle = nn.Sequential(nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 16, 3, padding=1))
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.end = nn.Conv2d(24, 3, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.start(x)
        low = self.down(first)
        low = low + self.middle(low)
        nearest = F.interpolate(low, scale_factor=2, mode="nearest")[:, :8]
        return self.end(torch.cat([first, self.up(low), nearest], 1))  # type: ignore[no-any-return]


def unet(batch: int) -> Built:
    return UNet(), {"x": torch.randn(batch, 3, 16, 16)}


def mlp(batch: int) -> Built:
    model = nn.Sequential(
        nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 32), nn.Mish(), nn.Linear(32, 4)
    )
    return model, {"input": torch.randn(batch, 16)}


def cnn(batch: int) -> Built:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=8), nn.Hardswish(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(72, 10),
    )  # fmt: skip
    return model, {"input": torch.randn(batch, 3, 16, 16)}


class Recurrent(nn.Module):
    """An embedding, a recurrent layer and a head on the last step."""

    def __init__(self, layer: type[nn.LSTM | nn.GRU]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 16)
        self.layer = layer(16, 16, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, 5)

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.head(self.layer(self.embedding(input_ids))[0][:, -1])  # type: ignore[no-any-return]


def lstm(batch: int) -> Built:
    return Recurrent(nn.LSTM), _tokens(batch, length=5)


def gru(batch: int) -> Built:
    return Recurrent(nn.GRU), _tokens(batch, length=5)


def transformer(batch: int) -> Built:
    model = nn.Transformer(32, 2, 1, 1, 64, dropout=0.0, batch_first=True)
    return model, {"src": torch.randn(batch, 7, 32), "tgt": torch.randn(batch, 5, 32)}


class Autoencoder(nn.Module):
    """A variational autoencoder; the noise is an input."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(24, 32), nn.ELU(), nn.Linear(32, 16))
        self.decoder = nn.Sequential(nn.Linear(8, 32), nn.Softplus(), nn.Linear(32, 24), nn.Sigmoid())

    def forward(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        mean, logvar = self.encoder(x).chunk(2, -1)
        divergence = -0.5 * (1 + logvar - mean.square() - logvar.exp()).sum(-1)
        return self.decoder(mean + noise * torch.exp(0.5 * logvar)), divergence


def vae(batch: int) -> Built:
    return Autoencoder(), {"x": torch.rand(batch, 24), "noise": torch.randn(batch, 8)}


class GraphNetwork(nn.Module):
    """Two rounds of messages along edges, summed at their targets; a pooled head per graph."""

    def __init__(self) -> None:
        super().__init__()
        self.messages = nn.ModuleList(nn.Linear(32, 16) for _ in range(2))
        self.updates = nn.ModuleList(nn.GRUCell(16, 16) for _ in range(2))
        self.head = nn.Linear(16, 3)

    def forward(self, nodes: Tensor, edges: Tensor, graph_of: Tensor, graphs: Tensor) -> Tensor:
        source, target = edges
        for message, update in zip(self.messages, self.updates, strict=True):
            sent = F.relu(message(torch.cat([nodes[source], nodes[target]], -1)))
            nodes = update(torch.zeros_like(nodes).index_add(0, target, sent.to(nodes.dtype)), nodes)
        pooled = graphs.index_add(0, graph_of, nodes.to(graphs.dtype))
        return self.head(pooled)  # type: ignore[no-any-return]


def gnn(batch: int) -> Built:
    count = 6 * batch
    edges = torch.randint(0, count, (2, 3 * count))
    graph_of = torch.arange(count) // 6
    inputs = {"nodes": torch.randn(count, 16), "edges": edges, "graph_of": graph_of, "graphs": torch.zeros(batch, 16)}
    return GraphNetwork(), inputs


class Recommender(nn.Module):
    """A bag of embeddings beside dense features, and the products of all pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(50, 8, mode="sum") for _ in range(3))
        self.dense = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.head = nn.Linear(14, 1)

    def forward(self, dense: Tensor, sparse: Tensor) -> Tensor:
        first = self.dense(dense)
        rows = torch.stack([first, *(bag(sparse[:, k]) for k, bag in enumerate(self.bags))], 1)
        products = torch.bmm(rows, rows.transpose(1, 2))
        above = torch.triu_indices(4, 4, 1)
        return self.head(torch.cat([first, products[:, above[0], above[1]]], 1))  # type: ignore[no-any-return]


def dlrm(batch: int) -> Built:
    return Recommender(), {"dense": torch.randn(batch, 4), "sparse": torch.randint(0, 50, (batch, 3, 5))}


class Field(nn.Module):
    """A radiance field: sines and cosines of positions, a network, and the sum of colours along each ray."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(27, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, points: Tensor) -> Tensor:
        angles = points[..., None] * (2.0 ** torch.arange(4, device=points.device) * math.pi)
        encoded = torch.cat([points, angles.sin().flatten(-2), angles.cos().flatten(-2)], -1)
        *_, density = out = self.network(encoded).unbind(-1)
        alpha = 1 - torch.exp(-F.softplus(density))
        light = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
        return (torch.stack(out[:3], -1).sigmoid() * (alpha * light)[..., None]).sum(1)


def nerf(batch: int) -> Built:
    return Field(), {"points": torch.rand(batch, 6, 3)}


class Mixer(nn.Module):
    """An MLP over the patches, then one over the channels."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, stride=4)
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(2))
        self.tokens = nn.Sequential(nn.Linear(16, 32), nn.GELU(approximate="tanh"), nn.Linear(32, 16))
        self.channels = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = x + self.tokens(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return (x + self.channels(self.norms[1](x))).mean(1)  # type: ignore[no-any-return]


def mixer(batch: int) -> Built:
    return Mixer(), {"x": torch.randn(batch, 3, 16, 16)}


class TemporalNetwork(nn.Module):
    """Dilated causal convolutions over time, with weight norm and residuals."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.utils.parametrizations.weight_norm(nn.Conv1d(8, 8, 3, dilation=2**depth)) for depth in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        for depth, layer in enumerate(self.layers):
            x = x + F.leaky_relu(layer(F.pad(x, (2 * 2**depth, 0))))
        return x.amax(-1)


def tcn(batch: int) -> Built:
    return TemporalNetwork(), {"x": torch.randn(batch, 8, 12)}


class MixtureOfExperts(nn.Module):
    """Two experts of four per token, all computed and weighted, with the loss that balances them."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(16, 4)
        self.up, self.down = nn.Parameter(torch.randn(4, 16, 32) / 4), nn.Parameter(torch.randn(4, 32, 16) / 6)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        weights = self.gate(x).softmax(-1)
        best, chosen = weights.topk(2, -1)
        mask = torch.zeros_like(weights).scatter(-1, chosen, best / best.sum(-1, keepdim=True))
        experts = torch.einsum("bd,edh->ebh", x, self.up).relu()
        out = torch.einsum("ebh,ehd->ebd", experts, self.down)
        return torch.einsum("ebd,be->bd", out, mask), (weights.mean(0) * (mask > 0).float().mean(0)).sum()


def moe(batch: int) -> Built:
    return MixtureOfExperts(), {"x": torch.randn(batch * 4, 16)}


# -- all ---------------------------------------------------------------------------------------------

ZOO: dict[str, Builder] = {
    builder.__name__: builder
    for builder in (
        gpt2, llama, mistral, qwen2, gemma, phi, gpt_neox, opt, bloom, mamba, bert, roberta, albert, deberta, t5, bart,
        whisper, vit, swin, resnet, regnet, convnext, mobilenet, clip, unet, mlp, cnn, lstm, gru, transformer, vae, gnn,
        dlrm, nerf, mixer, tcn, moe,
    )
}  # fmt: skip

IMAGES = ("vit", "swin", "resnet", "regnet", "convnext", "mobilenet", "unet", "cnn", "mixer", "clip")
"""Those that take images, which may lie channels-last."""

CORNERED = ("mobilenet",)
"""Those whose gradients jump where one number comes to the other side of a corner, as their norms are over few numbers.
In some batches rounding decides that, whoever rounds, so that the worst of several says nothing of a program."""


def build(name: str, batch: int = 2, seed: int = 0) -> Built:
    torch.manual_seed(seed)
    return ZOO[name](batch)


def channels_last(module: nn.Module) -> nn.Module:
    """The module with the weights of its convolutions channels-last."""
    return module.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def to_channels_last(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs with images channels-last."""
    return {
        key: value.to(memory_format=torch.channels_last) if isinstance(value, Tensor) and value.ndim == 4 else value
        for key, value in inputs.items()
    }
