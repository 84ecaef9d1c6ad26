-- One row for each word and linguistic feature that it has: NOUN, VERB, PRON, SUBJ, OBJ, NEG.
--
-- Tags are those of the Penn Treebank where a word has one, else universal ones; relations those of ClearNLP and of
-- Universal Dependencies. NEG is a whole word of the paper's list, or the clitic n't that treebanks split off.
select example, side, word, feature
from (
    select
        example, side, word,
        unnest([
            case
                when xpos in ('NN', 'NNS', 'NNP', 'NNPS') then 'NOUN'
                when xpos in ('VB', 'VBD', 'VBG', 'VBN', 'VBP', 'VBZ') then 'VERB'
                when xpos in ('PRP', 'PRP$') then 'PRON'
                when xpos in (
                    'CC', 'CD', 'DT', 'EX', 'FW', 'IN', 'JJ', 'JJR', 'JJS', 'LS', 'MD', 'PDT', 'POS', 'RB', 'RBR',
                    'RBS', 'RP', 'SYM', 'TO', 'UH', 'WDT', 'WP', 'WP$', 'WRB', 'ADD', 'AFX', 'GW', 'HYPH', 'NFP', 'XX'
                ) then null
                when upos in ('NOUN', 'PROPN') then 'NOUN'
                when upos in ('VERB', 'AUX') then 'VERB'
                when upos = 'PRON' then 'PRON'
            end,
            case
                when split_part(deprel, ':', 1) in ('nsubj', 'nsubjpass', 'csubj', 'csubjpass') then 'SUBJ'
                when deprel in ('agent', 'expl', 'obl:agent') then 'SUBJ'
                when split_part(deprel, ':', 1) in ('dobj', 'obj', 'iobj', 'dative', 'attr', 'oprd') then 'OBJ'
            end,
            if(
                lower(replace(form, '’', '''')) in (
                    'neither', 'nor', 'not', 'never', 'none', 'nothing', 'nowhere', 'n''t', 'don''t', 'won''t',
                    'didn''t', 'hadn''t', 'haven''t', 'can''t', 'isn''t', 'wasn''t', 'shouldn''t', 'couldn''t'
                ),
                'NEG', null
            )
        ]) as feature
    from words
)
where feature is not null
