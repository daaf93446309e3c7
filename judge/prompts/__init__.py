"""Labelling tasks as files: front matter and a template in, messages and JSON Schemas out."""

from judge.prompts.load import Task, find_tasks, load_task, parse_task
from judge.prompts.render import Mode, Prompt, Renderer
