-- One row for each input of the model.
select
    example, name, text, second, target, label, split, n_tokens, n_target_tokens, n_words, n_parts,
    cell_encoder, cell_decoder, cell_cross, pair_id, condition, document, cut, origin, segment,
    image_height, image_width, patch_height, patch_width, luminance
from stored.examples
