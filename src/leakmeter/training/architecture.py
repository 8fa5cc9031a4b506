"""Architecture: a model that starts from nothing, and the tokenizer learned for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, model_validator

from leakmeter.core.errors import BadInput
from leakmeter.core.keys import generator
from leakmeter.core.spec import Spec

_START, _END, _PAD = "<s>", "</s>", "<pad>"


class Architecture(Spec):
    """A causal language model of a well-known shape, with random weights and without dropout."""

    type: Literal["architecture"] = "architecture"
    shape: Literal["gpt2", "llama", "opt"] = "llama"
    hidden: int = Field(128, ge=1)
    layers: int = Field(3, ge=1)
    heads: int = Field(4, ge=1)
    vocabulary: int = Field(2000, ge=259)
    """The most tokens to learn; 256 bytes and three special tokens are always among them."""
    context: int = Field(256, ge=2)
    """The longest sequence in tokens."""

    @model_validator(mode="after")
    def _heads_divide_hidden(self) -> Architecture:
        if self.hidden % self.heads or (self.shape == "llama" and self.hidden // self.heads % 2):
            raise ValueError(
                f"hidden ({self.hidden}) must be a multiple of heads ({self.heads}); for llama, an even one"
            )
        return self

    def tokenizer(self, texts: Sequence[str]) -> Any:
        """A byte-level BPE tokenizer learned from texts; it puts the start token before what it encodes."""
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
        from transformers import PreTrainedTokenizerFast

        if not any(texts):
            raise BadInput("A tokenizer cannot be learned from no text. Give the training a vocabulary or examples.")
        core = Tokenizer(models.BPE())
        core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        core.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=self.vocabulary,
            special_tokens=[_START, _END, _PAD],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        core.train_from_iterator(texts, trainer)
        start = core.token_to_id(_START)
        core.post_processor = processors.TemplateProcessing(
            single=f"{_START} $A", pair=f"{_START} $A $B", special_tokens=[(_START, start)]
        )
        return PreTrainedTokenizerFast(
            tokenizer_object=core,
            bos_token=_START,
            eos_token=_END,
            pad_token=_PAD,
            model_max_length=self.context,
            padding_side="right",
            clean_up_tokenization_spaces=False,
        )

    def model(self, tokenizer: Any, seed: int) -> Any:
        """The model with the random weights of a seed, whatever torch drew before, and leaving torch as it was."""
        import torch
        from transformers import AutoModelForCausalLM

        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            torch.manual_seed(int(generator(seed, "weights", self.key).integers(2**62)))
            return AutoModelForCausalLM.from_config(self._config(tokenizer), dtype=torch.float32)

    def _config(self, tokenizer: Any) -> Any:
        from transformers import GPT2Config, LlamaConfig, OPTConfig

        tokens = {
            "vocab_size": len(tokenizer),
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
        }
        if self.shape == "gpt2":
            sizes = {"n_embd": self.hidden, "n_layer": self.layers, "n_head": self.heads, "n_positions": self.context}
            return GPT2Config(**tokens, **sizes, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
        sizes = {
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "max_position_embeddings": self.context,
        }
        if self.shape == "opt":
            widths = {"ffn_dim": 4 * self.hidden, "word_embed_proj_dim": self.hidden}
            return OPTConfig(**tokens, **sizes, **widths, dropout=0.0, attention_dropout=0.0)
        # Three matrices instead of two: 8/3 of the width gives the feed-forward layer of the others' size.
        wide = -(-self.hidden * 8 // 3 // 16) * 16
        return LlamaConfig(**tokens, **sizes, intermediate_size=wide, tie_word_embeddings=True)
