"""This file declares the tables of evidence: what only the model can tell, kept as additions when a recipe asks.

No reduction of the stored maps gives them again.
"""

import pyarrow as pa

from attnstore.format.tables import EXAMPLE, KIND, column, per_head

_I32, _I16, _STR, _F32, _F64 = pa.int32(), pa.int16(), pa.string(), pa.float32(), pa.float64()


def _key(name: str, kind: pa.DataType, meaning: str) -> pa.Field:
    return column(name, kind, meaning, required=True)


def _numbers(name: str, meaning: str, kind: pa.DataType = _F32) -> pa.Field:
    """A column with a list that is not over heads."""
    return column(name, pa.list_(pa.field("element", kind)), meaning)


_LAYER, _HEAD = _key("layer", _I16, "layer, from 0"), _key("head", _I16, "head, from 0")
_TOKEN = _key("token", _I32, "token")
_TASK = column("task", _STR, "kind of the task, such as classification")
_INTERVENTION = _key(
    "intervention", _STR, "what a head gives instead: zero, uniform (1/T over real keys), mean; `none` for nothing"
)
_HEAD_SET = _key(
    "head_set", _STR, "which heads were switched off and how, such as `zero 0-1 2-11`; `none` for the model as it is"
)

_UNBIASED = "as the model holds it, biases and gains of norms left out, as in all columns"

_OVER_LAYERS, _OVER_STATES = "; a list over layers", "; a list over layers and, last, what the last block gives"
_PAIRS = "; a list over the heads of the layer, each with itself and those after it, row by row"
_NORMED = "of gamma * (vector - its mean) in the place of each vector; null where no norm takes in the sum"

EVIDENCE_TABLES: dict[str, pa.Schema] = {
    "value_norms": pa.schema(
        [EXAMPLE, KIND, _TOKEN, per_head("value_norm", _F32, "length of what the head moves from this key token")]
    ),
    "output_norms": pa.schema(
        [
            EXAMPLE,
            KIND,
            _TOKEN,
            per_head("output_norm", _F32, "length of what the head adds to this query token"),
            _numbers("layer_norm", "length of what all heads of a layer add together, b_O aside; a list over layers"),
        ]
    ),
    "head_weights": pa.schema(
        [
            KIND,
            _LAYER,
            _HEAD,
            column("w_query_norm", _F64, f"Frobenius norm of W_Q; {_UNBIASED}"),
            column("w_query_spectral", _F64, "largest singular value of W_Q"),
            column("w_key_norm", _F64, "Frobenius norm of W_K"),
            column("w_key_spectral", _F64, "largest singular value of W_K"),
            column("w_value_norm", _F64, "Frobenius norm of W_V"),
            column("w_value_spectral", _F64, "largest singular value of W_V"),
            column("w_output_norm", _F64, "Frobenius norm of W_O"),
            column("w_output_spectral", _F64, "largest singular value of W_O"),
            column("w_output_share", _F64, "the norm of W_O as a share of the sum over the heads of the layer"),
            column("qk_norm", _F64, "Frobenius norm of W_Q W_K^T; null where queries and keys were not told apart"),
            column("qk_spectral", _F64, "largest singular value of W_Q W_K^T"),
            column("qk_rank", _F64, "effective rank of W_Q W_K^T: (sum of singular values)^2 / sum of their squares"),
            column(
                "qk_bilinear",
                pa.bool_(),
                "whether the scores are nothing but queries times keys: not turned by position",
            ),
            column("ov_norm", _F64, "Frobenius norm of W_V W_O"),
            column("ov_spectral", _F64, "largest singular value of W_V W_O"),
            column("ov_rank", _F64, "effective rank of W_V W_O"),
            column("ov_trace", _F64, "trace of W_V W_O; null for cross-attention, which reads and writes elsewhere"),
            column("copying", _F64, "sum of the eigenvalues' real parts / sum of their moduli, of W_V W_O: -1 to 1"),
        ]
    ),
    "head_overlaps": pa.schema(
        [
            KIND,
            _LAYER,
            _key("head_a", _I16, "head, from 0"),
            _key("head_b", _I16, "another head of the layer, after head_a"),
            column(
                "cosine_smallest", _F64, "cosine of the smallest principal angle between the row spaces of both W_O"
            ),
            column("cosine_mean", _F64, "cosine of the mean of the principal angles"),
            column("cosine_largest", _F64, "cosine of the largest of them"),
            column("overlap", _F64, "mean of their squared cosines: 1 for one space within the other"),
            column("random", _F64, "overlap of spaces of the same ranks that are turned at random, on average"),
        ]
    ),
    "compositions": pa.schema(
        [
            _key("relation", _STR, "q, k or v: which matrix of the later head reads what the earlier one writes"),
            KIND,
            _key("layer_a", _I16, "layer of the earlier head"),
            _key("head_a", _I16, "earlier head"),
            _key("layer_b", _I16, "layer of the later head"),
            _key("head_b", _I16, "later head"),
            column("score", _F64, "|W_OV W| / (|W_OV| |W|) in Frobenius norms, with W of the later head; 0-1"),
            column("random", _F64, "root of the mean squared score where W is turned at random: 1 / sqrt(hidden size)"),
            _key(
                "approximate",
                pa.bool_(),
                "whether the path bends: no norm before the later layer's heads (post-norm), or q and k not bilinear",
            ),
            _key("folded", pa.bool_(), "whether the gains of the norms before both layers are in W_Q, W_K and W_V"),
        ]
    ),
    "mixing_facts": pa.schema(
        [
            EXAMPLE,
            KIND,
            _TOKEN,
            _numbers("self_weight", "weight of the token to itself, mean over heads" + _OVER_LAYERS),
            _numbers("mix_norm", "length of what all heads together take from other tokens" + _OVER_LAYERS),
            _numbers("pres_norm", "length of what they take from the token itself" + _OVER_LAYERS),
            _numbers("pres_norm_res", "length of that and the token's stream" + _OVER_LAYERS),
            _numbers("mix_norm_ln", "mix_norm after the norm of the sum, its scale frozen; null without such a norm"),
            _numbers("pres_norm_ln", "pres_norm_res after it; null without such a norm"),
            _numbers("x_norm", "length of the token's stream, to which the layer's output is added" + _OVER_LAYERS),
            _numbers("out_norm", "length of the layer's output, b_O added" + _OVER_LAYERS),
            _numbers("cosine", "cosine of the two" + _OVER_LAYERS),
        ]
    ),
    "identity_facts": pa.schema(
        [
            EXAMPLE,
            KIND,
            _TOKEN,
            _numbers("cosine", "cosine of the token's stream with what the first layer took in" + _OVER_STATES),
            _numbers("nearest", "token whose first state it is most like; the lowest on a tie" + _OVER_STATES, _I32),
            _numbers("hidden_norm", "length of the token's stream" + _OVER_STATES),
        ]
    ),
    "value_grams": pa.schema(
        [
            EXAMPLE,
            KIND,
            _LAYER,
            _TOKEN,
            _numbers("gram", "product of what two heads take from this key token at weight 1" + _PAIRS),
            _numbers("stream", "its product with the token's stream; a list over heads; null in cross-attention"),
            column("square", _F32, "product of the stream with itself; null in cross-attention"),
            _numbers("gram_ln", f"gram {_NORMED}"),
            _numbers("stream_ln", f"stream {_NORMED}"),
            column("square_ln", _F32, f"square {_NORMED}"),
            column("scale", _F32, "1 / sigma of the sum that the norm takes in here; null without such a norm"),
        ]
    ),
    "predictions": pa.schema(
        [
            _HEAD_SET,
            _TASK,
            EXAMPLE,
            column("loss", _F64, "mean loss over the targets; null without one"),
            _key("n", _I32, "targets"),
            column("gold", _STR, "what is right, as the task reads the label: a class, a number, an answer"),
            column("predicted", _STR, "label or text that is predicted"),
            column("score", _F64, "number that is predicted, or share of targets that are right"),
            _numbers("logits", "logit of each class"),
        ]
    ),
    "head_sets": pa.schema(
        [
            _HEAD_SET,
            _TASK,
            _key("plan", _STR, "heads, layers, pruning, greedy or beam; a set of several plans has a row for each"),
            column("series", _STR, "what tells several orders of pruning, and several searches, apart"),
            column("ranking", _STR, "how pruning ordered the heads: delta, importance or given"),
            column("metric", _STR, "what pruning by delta and the searches looked at"),
            column("step", _I32, "heads that are off, for pruning and searches"),
            column("kept", pa.bool_(), "whether the search went on from this set; null outside of searches"),
            _INTERVENTION,
            _key("size", _I32, "heads that are off"),
            column("kind", _STR, "kind of attention, where all heads of the set have one"),
            column("layer", _I16, "layer, where all heads of the set lie in one"),
            column("head", _I16, "head, of a single one"),
            _numbers("kinds", "kind of each head of the set", _STR),
            _numbers("layers", "layer of each head of the set", _I16),
            _numbers("heads", "number of each head of the set in its layer", _I16),
            _numbers("param_groups", "which layers share the weights of each head of the set", _I16),
        ]
    ),
    "head_scores": pa.schema(
        [
            _TASK,
            _key("metric", _STR, "what is measured: see the view set_scores"),
            _INTERVENTION,
            _HEAD_SET,
            column("value", _F64, "over all examples; null where it is not defined"),
            _key("n", _I32, "examples or targets that it is about"),
            _key("seed", _I32, "which tokens were masked, where the task masks some"),
        ]
    ),
    "mean_outputs": pa.schema(
        [
            KIND,
            _LAYER,
            _HEAD,
            _key("n", _I32, "query tokens of the whole corpus, special ones included, that the mean is over"),
            _numbers("mean_output", "what the head hands to W_O on average"),
        ]
    ),
    "gradient_facts": pa.schema(
        [
            EXAMPLE,
            KIND,
            _key("query_class", _STR, "class of the query tokens: the name of a special token, punct, or other"),
            _key("key_class", _STR, "class of the key tokens"),
            _key("n_queries", _I32, "query tokens of that class"),
            _key("n_keys", _I32, "key tokens of that class"),
            _key("n_pairs", pa.int64(), "pairs of the two; in a causal map those whose query sees the key"),
            per_head("abs_gradient", _F32, "|dLoss/dA| summed over pairs; null where a gradient is not finite"),
            per_head("gradient_weight", _F32, "A dLoss/dA, summed over pairs; null likewise"),
            per_head("abs_gradient_weight", _F32, "|A dLoss/dA|, summed over pairs; null likewise"),
            per_head("weight", _F32, "A of what the task feeds the model, summed over pairs; null likewise"),
        ]
    ),
    "importance_facts": pa.schema(
        [
            EXAMPLE,
            KIND,
            _LAYER,
            _HEAD,
            column("importance", _F64, "<z, dLoss/dz> over all query tokens, signed; null where not finite"),
            column("importance_abs_tokens", _F64, "|<z, dLoss/dz>| of each query token, summed; null likewise"),
            _key("n_tokens", _I32, "query tokens, special tokens included"),
        ]
    ),
    "attribution_facts": pa.schema(
        [
            EXAMPLE,
            KIND,
            _LAYER,
            _HEAD,
            column("max", _F64, "largest attribution of an edge of the head's map; null where not finite"),
            column("sum", _F64, "attributions of all edges, summed; null likewise"),
            column("change", _F64, "the logit, less that with the maps of the whole layer at 0; null likewise"),
        ]
    ),
    "logit_contributions": pa.schema(
        [
            EXAMPLE,
            KIND,
            _LAYER,
            _HEAD,
            column("true_class", _F64, "what the head adds to the true class's logit; null without a label"),
            column("predicted_class", _F64, "what the head adds to the predicted class's logit"),
        ]
    ),
}
"""Every table of evidence by name."""
