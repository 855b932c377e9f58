"""With the Trainer of Hugging Face's transformers: a tiny GPT-2 made here, `torch_compile` and checkpoints."""

import argparse

import torch
from steplog import StepLog
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments


class Tokens(Dataset):
    def __init__(self, number):
        self.text = (torch.arange(number + 16).square() % 61).long()

    def __len__(self):
        return len(self.text) - 16

    def __getitem__(self, at):
        tokens = self.text[at : at + 16]
        return {"input_ids": tokens, "labels": tokens}


class Report(TrainerCallback):
    """The loss of each step, as the Trainer logs it."""

    def __init__(self):
        self.log = StepLog()

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            self.log(logs["loss"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_steps", type=int, default=120)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--backend", default="inductor")
    given = parser.parse_args()
    config = GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2, attn_pdrop=0, resid_pdrop=0)
    torch.manual_seed(0)
    model = GPT2LMHeadModel(config)
    arguments = TrainingArguments(
        output_dir="trainer",
        max_steps=given.max_steps,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=2,
        logging_steps=1,
        save_steps=40,
        torch_compile=given.compile,
        torch_compile_backend=given.backend if given.compile else None,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Tokens(400), callbacks=[Report()])
    trainer.train()
    trainer.save_model("trainer/final")


if __name__ == "__main__":
    main()
