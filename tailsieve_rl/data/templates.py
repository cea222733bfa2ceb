"""The prompt templates of the paper's Appendix A.1, as chat messages.

The code template is printed there in full. Of the mathematics template only the text from `<END>` on is printed, and
that there is no system message: the wording before it is ours (`MATH_WORDING_OF_OURS`).
"""

from collections.abc import Mapping

Messages = list[dict[str, str]]

MATH_WORDING_OF_OURS = "Reason step by step, put the final answer, and nothing else, in \\boxed{}, and then write "
MATH_WORDING_OF_THE_PAPER = (
    "<END>\nAfter <END>, stop immediately. Do not write any words, punctuation, newline, or explanation after <END>."
)

CODE_SYSTEM = "You are an expert Python programmer."
CODE_USER = (
    "Solve the coding problem below. "
    "Provide your reasoning and explanation, including the key algorithm, its correctness, important edge cases, and "
    "its time and space complexity. "
    "Then provide exactly one complete Python function. "
    "After the function, write <END> and stop immediately. "
    "Do not repeat or revise the answer.\n\n"
    "Problem:\n{question}\n\n"
    "Required function:\n{function_declaration}\n\n"
    "Specification:\n{docstring}"
)

WORDING: Mapping[str, str] = {
    "math": "paper A.1 from <END> on; the wording between the question and <END> is ours, A.1 does not print it",
    "code": "paper A.1; its line breaks are ours, A.1 prints the sentences in one run",
}
"""What of a template is the paper's, by ability."""


def math_messages(question: str) -> Messages:
    """The single user message of a mathematical problem."""
    content = f"{question}\n\n{MATH_WORDING_OF_OURS}{MATH_WORDING_OF_THE_PAPER}"
    return [{"role": "user", "content": content}]


def code_messages(question: str, function_declaration: str, docstring: str) -> Messages:
    """System and user message of a coding problem."""
    content = CODE_USER.format(question=question, function_declaration=function_declaration, docstring=docstring)
    return [{"role": "system", "content": CODE_SYSTEM}, {"role": "user", "content": content.rstrip()}]
