"""Trains a small vision transformer on handwritten digits, and writes the images that it never saw.

    python docs/digits.py digits
    attnstore ingest ingest/digits.toml digits.attn

Data are the 1,797 digits of 8 x 8 pixels that scikit-learn carries (UCI Optical Recognition of Handwritten Digits, CC
BY 4.0, E. Alpaydin and C. Kaynak 1998), enlarged to 16 x 16 for patches of 4 x 4. A third of each class is held out
and written as PNG files with labels.csv. Training moves the images about by up to a pixel of the original, so that
heads have to look at shapes. FOLDER/random is the same model before training: what a head prefers there is in the
images, not learnt.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessorPil

SIZE, PATCH, LAYERS, HEADS = 16, 4, 4, 4
BATCH = 64


def pixels(images: np.ndarray) -> torch.Tensor:
    """What the processor would give for images [image, 8, 8] of 0 to 255: [image, 1, 16, 16], from -1 to 1."""
    grey = [np.asarray(Image.fromarray(image).resize((SIZE, SIZE), Image.Resampling.BILINEAR)) for image in images]
    return torch.from_numpy(np.stack(grey)[:, None].astype(np.float32) / 127.5 - 1)


def untrained() -> ViTForImageClassification:
    """A model of 4 layers of 4 heads with random weights."""
    names = {index: str(index) for index in range(10)}
    config = ViTConfig(
        image_size=SIZE, patch_size=PATCH, num_channels=1, hidden_size=64, intermediate_size=128,
        num_hidden_layers=LAYERS, num_attention_heads=HEADS, id2label=names, label2id={v: k for k, v in names.items()},
    )  # fmt: skip
    return ViTForImageClassification(config)


def train(model: ViTForImageClassification, images: np.ndarray, labels: np.ndarray, epochs: int) -> None:
    """So many passes over the images."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    steps = epochs * -(-len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    inputs, wanted = pixels(images), torch.from_numpy(labels)
    for _ in range(epochs):
        for chosen in torch.randperm(len(inputs)).split(BATCH):
            down, right = torch.randint(-2, 3, (2,)).tolist()  # two pixels are one of the original
            moved = torch.roll(inputs[chosen], (down, right), (2, 3))
            loss = torch.nn.functional.cross_entropy(model(moved).logits, wanted[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()


def main(folder: Path, epochs: int) -> None:
    """Write FOLDER/random, /model and /images with their labels; print the share of images that are told right."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # so small a model waits for a second thread longer than it takes
    data = load_digits()
    images = np.rint(data.images * 255 / 16).astype(np.uint8)
    known, held_out = train_test_split(np.arange(len(images)), test_size=1 / 3, random_state=0, stratify=data.target)
    processor = ViTImageProcessorPil(
        size={"height": SIZE, "width": SIZE}, image_mean=[0.5], image_std=[0.5], do_convert_rgb=False
    )
    model = untrained()
    model.save_pretrained(folder / "random")
    train(model, images[known], data.target[known], epochs)
    model.eval().save_pretrained(folder / "model")
    for name in ("random", "model"):
        processor.save_pretrained(folder / name)
    (folder / "images").mkdir(exist_ok=True)
    with (folder / "images" / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["file", "label"])
        for index in sorted(held_out.tolist()):
            name = f"digit_{index:04}.png"
            Image.fromarray(images[index]).save(folder / "images" / name)
            table.writerow([name, data.target[index]])
    with torch.inference_mode():
        for what, chosen in (("trained on", known), ("held out", held_out)):
            told = model(pixels(images[chosen])).logits.argmax(dim=1).numpy() == data.target[chosen]
            print(f"{told.mean():.3f} of {len(chosen)} images {what}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the model and the images go")
    parser.add_argument("--epochs", type=int, default=60)
    asked = parser.parse_args()
    main(asked.folder, asked.epochs)
