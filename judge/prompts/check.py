"""Check the template of a task file: its variables, its fences and its optional inputs."""

from jinja2 import nodes

from judge.errors import TaskError
from judge.prompts.render import CODES, CONSTANT_NAMES, CUE, Mode
from judge.prompts.task import Task
from judge.prompts.template import PromptTemplate, find_present


def check_template(task: Task, where: str) -> None:
    """Check that a template can be rendered for every unit that has the required inputs.

    Raises a TaskError that names the line and the variable if the template is invalid.
    """
    constant, unit = task.templates(where)
    inputs = set(task.input_names)
    for name, line in constant.names.items():
        # The constant half comes first and is equal for all units, so that providers can reuse its cache.
        if name in inputs or name == CUE:
            raise TaskError(
                f"{where}: template, line {line}: '{name}' may only be used below '<!-- unit -->', because the part above is the same for all units"
            )
        if name not in CONSTANT_NAMES:
            raise TaskError(f"{where}: template, line {line}: undeclared variable '{name}'")
    for name, line in unit.names.items():
        if name not in inputs and (task.spec.raw or name != CUE):
            raise TaskError(
                f"{where}: template, line {line}: undeclared variable '{name}'; add it to inputs or remove it"
            )
    # Units without a declared input are left out, so an unused input would silently drop units.
    if unused := sorted(inputs - unit.names.keys()):
        raise TaskError(f"{where}: template: input '{unused[0]}' is declared but never shown")
    if not task.spec.raw:
        _refuse_unfencing(unit)
    _refuse_absent(unit, unit.tree.body, set(task.spec.optional_inputs))
    for question in task.spec.questions:
        if len(question.labels) > len(CODES):
            raise TaskError(f"{where}: field '{question.field}' has more than {len(CODES)} labels")
    # Imported here, because the renderer of raw tasks imports this module's caller.
    from judge.prompts.raw import renderer_of

    renderer = renderer_of(task, Mode.TEXT if task.spec.raw else Mode.CODES if task.one_choice else Mode.JSON)
    # One rendering finds what only values show, such as a part that passages do not have.
    renderer.render({name: f"sample {name}" for name in task.input_names})


def _refuse_unfencing(template: PromptTemplate) -> None:
    """Raise TaskError if the template could show a part of an input, which would have no fence."""
    for loop in template.tree.find_all(nodes.For):
        raise template.error(
            loop.lineno, "a loop would show parts of an input without a fence; show it as {{ name }}"
        )
    for part in template.tree.find_all(nodes.Getattr):
        raise template.error(
            part.lineno, f"'.{part.attr}' would show an input without its fence; show it as {{{{ name }}}}"
        )


def _refuse_absent(template: PromptTemplate, body: list[nodes.Node], absent: set[str]) -> None:
    """Raise TaskError if a variable of `absent` is shown without an {% if %} that requires it."""
    for node in body:
        if isinstance(node, nodes.If):
            left = absent
            for branch in (node, *node.elif_):
                _refuse_absent(template, branch.body, left - find_present(branch.test))
                left = left - find_present(branch.test, outcome=False)
            _refuse_absent(template, node.else_, left)
            continue
        shown = node.iter if isinstance(node, nodes.For) else node
        for name in (shown, *shown.find_all(nodes.Name)):
            if isinstance(name, nodes.Name) and name.name in absent:
                raise template.error(
                    name.lineno,
                    f"'{name.name}' is optional, so not every unit has it; put it in {{% if {name.name} %}}",
                )
        if isinstance(node, nodes.For):
            _refuse_absent(template, node.body, absent)
