"""An agent loop of your own on the coordinator: the model answers, is asked to look again, and answers anew.

python examples/gsm8k/prepare.py --out outputs/gsm8k
python examples/second_look.py trainer.total_training_steps=2

An agent loop need not know of routing. `server_manager.generate` finds the group by the task that it is called from
(verl makes one for each response, and tasks made in it inherit it), and all turns of a response go to one replica. When
the group is left over at the cutoff, GroupClosed is raised, in the middle of a turn or by the next one. A loop must

* generate in the task that runs it, or in tasks that it makes there: not in a thread or a process of its own;
* let GroupClosed through, and free what it holds (`finally`, `async with`): the group comes again, from its prompt;
* return the engine's `extra_fields`, with the first weight version of the first turn and the last one of the last turn:
  they are checked.

`tailsieve_rl.rollout.context.RESPONSE.get()` says which group, response, attempt and retry a loop runs for.
"""

import os
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput
from verl.utils.profiler import simple_timer

HERE = Path(__file__).resolve().parent
AGAIN = {"role": "user", "content": "Look at it again, then give your final answer."}


class SecondLookAgentLoop(AgentLoopBase):
    """Two turns; the tokens of both answers are trained, those of the question between them are not."""

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        longest, scored = self.rollout_config.response_length, self.rollout_config.calculate_log_probs
        messages, conversation = list(kwargs["raw_prompt"]), uuid4().hex
        tokens = await self.ct_build_initial_tokens(messages)
        prompt_tokens = len(tokens)
        mask, log_probs = [], [] if scored else None
        fields: dict[str, Any] = {}
        metrics: dict[str, Any] = {}
        while True:
            with simple_timer("generate_sequences", metrics):
                output = await self.server_manager.generate(
                    request_id=conversation, prompt_ids=tokens, sampling_params=sampling_params
                )
            first_version = fields.get("min_global_steps", output.extra_fields.get("min_global_steps"))
            fields = {**output.extra_fields, "min_global_steps": first_version}
            merged, mask, log_probs = await self.ct_merge_assistant_token(
                tokens, output.token_ids, mask, log_probs, output.log_probs if scored else None
            )
            tokens = merged.token_ids
            messages = [*messages, {"role": "assistant", "content": self.tokenizer.decode(output.token_ids)}]
            if AGAIN in messages or len(mask) >= longest:
                break
            asked = [*messages, AGAIN]
            merged, mask, log_probs = await self.ct_merge_context_msg(messages, asked, tokens, mask, log_probs)
            tokens, messages = merged.token_ids, asked
        return AgentLoopOutput(
            prompt_ids=tokens[:prompt_tokens],
            response_ids=tokens[prompt_tokens:][:longest],
            response_mask=mask[:longest],
            response_logprobs=log_probs[:longest] if scored else None,
            num_turns=len(messages),
            metrics=metrics,
            extra_fields={**fields, "turn_scores": [], "tool_rewards": []},
        )


def main(overrides: list[str]) -> int:
    """Train the recipe cpu/gsm8k with this loop."""
    from tailsieve_rl import train

    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))  # Ray's workers
    agent = "actor_rollout_ref.rollout.agent"
    loop = (f"{agent}.agent_loop_config_path={HERE}/agent_loops.yaml", f"{agent}.default_agent_loop=second_look")
    return train.main(["--config-name", "cpu/gsm8k", *loop, *overrides])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
