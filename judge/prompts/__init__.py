"""Labelling tasks. A task is a file with front matter and a template, rendered as messages and JSON Schemas."""

from judge.prompts.load import Task, find_tasks, load_task, parse_task
from judge.prompts.render import Mode, Prompt, Renderer
