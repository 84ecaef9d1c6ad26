"""Tests of the vocabulary of SQL: the tables that every store shows, with their columns."""

import pytest

from attnstore.errors import NotStored
from attnstore.format.fact_tables import COMPUTED
from attnstore.format.tables import TABLES
from attnstore.store.store import Store

VOCABULARY = {
    "examples": "example name text second target label split n_tokens n_target_tokens n_words n_parts cell_encoder"
    " cell_decoder cell_cross pair_id condition document cut origin segment image_height image_width"
    " patch_height patch_width luminance",
    "tokens": "example side token text token_id word part special punct start_char end_char type_id row col trigger",
    "words": "example side word form lemma upos xpos governor deprel derived sentence start_char end_char n_tokens"
    " aligned part",
    "mentions": "example mention cluster start_word end_word head_word type",
    "links": "example link relation source_start_word source_end_word target_start_word target_end_word core",
    "heads": "kind layer head kv_head param_group queries keys causal",
    "token_facts": "example kind token layer head argmax max entropy_nats side",
    "token_masses": "example kind token layer head self_mass previous_mass next_mass cls_mass sep_mass punct_mass side",
    "word_facts": "example kind word layer head attends_to attends_to_weight attended_by attended_by_weight side",
    "head_facts": " ".join(TABLES["head_facts"].names),
    "attention": "example kind layer head query key weight",
    "word_attention": "example kind layer head query key weight",
    "segments": "segment n_examples n_files n_bytes tables",
    "additions": "addition n_files n_bytes tables facts",
    "skipped": "name reason origin",
    "alignment_facts": "example kind layer head mass total edges aligned_edges n_property n_pairs",
    "antecedents": "candidates example mention head_word type determiner antecedents"
    " n_candidates nearest head_match rule_based",
    "class_profiles": "kind layer head class mean d n",
    "class_tests": "kind layer head eta2 eta2_chance h p q best_class direction auroc n n_classes",
    "drifts": "kind layer head pair_id condition clean triggered focus_share separator form on_trigger trigger_weight",
    "flow_facts": "example kind query_class key_class n_queries n_keys uniform layer head mass",
    "flow_through": "example kind query key weight",
    "focus_facts": "example kind layer head n_queries focus focusing focus_sum trigger_sum side",
    "gradient_facts": (
        "example kind query_class key_class n_queries n_keys n_pairs layer head abs_gradient gradient_weight "
        "abs_gradient_weight weight"
    ),
    "importance_facts": "example kind layer head importance importance_abs_tokens n_tokens",
    "attribution_facts": "example kind layer head max sum change",
    "logit_contributions": "example kind layer head true_class predicted_class",
    "grid_facts": "example kind layer head n_queries distance_sum distance_renormalised_sum",
    "grid_offset_facts": "example kind dy dx n_queries layer head mass",
    "halves": "example half",
    "head_clusters": "kind layer head cluster",
    "head_coordinates": "kind layer head x y stress",
    "head_distances": "example kind n_rows js",
    "head_linkage": "kind step a b distance n_heads",
    "head_means": "kind layer head self next previous next_clark previous_clark cls sep"
    " punct distance_tokens entropy_nats uniform_nats confidence n",
    "head_metrics": "example kind layer head metric total n_rows",
    "head_pairs": "kind layer_a head_a layer_b head_b js_sum n_rows n_examples",
    "kept_facts": "example kind layer head n_queries kept_sum rest_sum rest_max largest_cut",
    "identity_facts": "example kind token state cosine nearest hidden_norm side",
    "layer_norm_facts": "example kind layer query_class key_class n_queries n_pairs layer_norm_sum residual_norm_sum"
    " residual_norm_ln_sum",
    "link_facts": "example kind link layer head source_to_target"
    " target_to_source source_to_target_mean target_to_source_mean",
    "map_patterns": "example kind layer head vertical neighbour diagonal block spread pattern",
    "mention_facts": "example kind mention layer head attends_to attends_to_weight attended_by attended_by_weight",
    "offset_facts": "example kind layer head n_queries mass",
    "pair_facts": "example kind source_word target_word layer head forward backward",
    "pair_rows": "example kind sentence dependent candidate label forward backward",
    "pattern_facts": "example kind layer head vertical neighbour diagonal block spread",
    "pattern_labels": "example kind layer head pattern annotator",
    "received_facts": "example kind token layer head received received_later from_cls from_sep side",
    "relations": "example side part sentence word governor deprel derived clitic",
    "resampled_facts": "example kind layer head weights",
    "rollout_facts": "example kind query key weight",
    "same_word_facts": "example kind layer head n_a n_b a_to_b_sum b_to_a_sum a_to_b_control_sum b_to_a_control_sum",
    "streaming_facts": "example kind layer head n_queries mass_sum",
    "token_features": "example side token word feature",
    "transfer_facts": "example kind layer head n_queries effective_keys_sum inverse_square_sum"
    " top1_sum top_sum keys_above_sum",
    "tree_facts": "example kind layer head n correct undirected_correct",
    "mixing_facts": "example kind token layer self_weight mix_norm pres_norm pres_norm_res mix_norm_ln pres_norm_ln"
    " x_norm out_norm cosine side",
    "output_norms": "example kind token layer head output_norm layer_norm side",
    "value_grams": "example kind layer token gram stream square gram_ln stream_ln square_ln scale side",
    "value_norms": "example kind token layer head value_norm side",
    "word_features": "example side word feature",
    "example_scores": "head_set task example metric total n",
    "head_effects": "kind layer head param_group intervention task metric value baseline delta harm n is_default",
    "head_scores": "task metric intervention head_set value n seed",
    "head_sets": "head_set task plan series ranking metric step kept intervention size kind layer head kinds layers"
    " heads param_groups",
    "induction_facts": "example kind pattern n_queries n_pairs uniform uniform_total layer head weight total",
    "mean_outputs": "kind layer head n mean_output",
    "predictions": "head_set task example loss n gold predicted score logits",
    "paired_scores": "head_set metric example total n baseline_total baseline_n",
    "set_effects": "head_set plan series ranking step kept intervention size kind layer head param_groups task metric"
    " value baseline delta n is_default",
    "set_scores": "head_set task metric value n is_default",
    "compositions": "relation kind layer_a head_a layer_b head_b score random approximate folded",
    "head_correlations": "kind x y spearman low high pearson n",
    "head_numbers": "kind layer head number value",
    "head_overlaps": "kind layer head_a head_b cosine_smallest cosine_mean cosine_largest overlap random",
    "head_weights": "kind layer head kv_head param_group w_query_norm w_query_spectral w_key_norm w_key_spectral"
    " w_value_norm w_value_spectral w_output_norm w_output_spectral w_output_share qk_norm qk_spectral qk_rank"
    " qk_bilinear ov_norm ov_spectral ov_rank ov_trace copying",
    "row_errors": "kind layer head largest_error mean_error n",
    "rounding_errors": "kind layer head largest_difference mean_difference n",
    "set_intervals": "head_set metric delta_low delta_high",
    "word_pairs": "example side property source_word target_word",
}

COMPUTED_LATER = {*COMPUTED, "token_masses", "map_patterns", "drifts"}
"""Tables that this store does not hold: a question computes them."""


def test_the_vocabulary_is_the_public_contract(store: Store) -> None:
    assert {name: " ".join(columns) for name, columns in store.tables.items()} == VOCABULARY


@pytest.mark.parametrize("name", sorted(set(VOCABULARY) - COMPUTED_LATER))
def test_a_table_has_the_columns_that_are_listed(store: Store, name: str) -> None:
    assert store.sql(f"from {name} limit 0").columns == tuple(VOCABULARY[name].split())


@pytest.mark.parametrize("name", sorted(COMPUTED_LATER))
def test_a_table_that_is_not_stored_is_refused_and_not_shown_empty(store: Store, name: str) -> None:
    with pytest.raises(NotStored, match="this store kept no"):
        store.sql(f"from {name} limit 0")
