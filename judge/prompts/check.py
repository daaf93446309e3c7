"""Check the template of a task file."""

from itertools import combinations

from jinja2 import TemplateSyntaxError, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from judge.errors import TaskError
from judge.prompts.render import CODES, Mode
from judge.prompts.task import UNIT_MARK, Task

_CONSTANT_NAMES = {"title", "questions"}
_CUE = "answer_cue"
_BLOCKS = (nodes.FilterBlock, nodes.AssignBlock, nodes.Macro, nodes.CallBlock)
"""Template blocks that can change the output of the text inside them."""


def check_template(task: Task, where: str) -> None:
    """Check that a template compiles, and that it can be rendered with each combination of optional inputs.

    Raises a TaskError that names the variable or the line if the template is invalid.
    """
    env = ImmutableSandboxedEnvironment()
    body = task.text.index("\n---\n", 3) + 5
    cues = set() if task.spec.raw else {_CUE}
    trees = {}
    starts = {"constant": body, "unit": task.text.index(UNIT_MARK, body) + len(UNIT_MARK)}
    for half, source in (("constant", task.constant), ("unit", task.unit)):
        try:
            trees[half] = env.parse(source)
        except TemplateSyntaxError as e:
            # Jinja counts from the start of a half, but the user sees the lines of the file.
            before = task.text[: task.text.index(source, starts[half])].count("\n")
            raise TaskError(f"{where}: template, line {before + (e.lineno or 1)}: {e.message}") from e
    inputs = set(task.input_names)
    # Sorted, so that the message does not depend on the order of a set.
    for name in sorted(meta.find_undeclared_variables(trees["constant"])):
        # The constant half comes first and is equal for all units, so that providers can reuse its cache.
        if name in inputs or name == _CUE:
            raise TaskError(
                f"{where}: template: '{name}' may only be used below '<!-- unit -->', because the part above is the same for all units"
            )
        if name not in _CONSTANT_NAMES:
            raise TaskError(f"{where}: template: undeclared variable '{name}'")
    used = meta.find_undeclared_variables(trees["unit"])
    for name in sorted(used):
        if name not in inputs | cues:
            raise TaskError(f"{where}: template: undeclared variable '{name}'; add it to inputs or remove it")
    # Units without a declared input are left out, so an unused input would silently drop units.
    if unused := sorted(inputs - used):
        raise TaskError(f"{where}: template: input '{unused[0]}' is declared but never shown")
    if not task.spec.raw:
        _refuse_unfencing(trees["unit"], inputs, where)
    for tree in trees.values():
        _refuse_endless(tree, where)
    for question in task.spec.questions:
        if len(question.labels) > len(CODES):
            raise TaskError(f"{where}: field '{question.field}' has more than {len(CODES)} labels")
    _try(task, where)


def _refuse_endless(tree: nodes.Template, where: str) -> None:
    """Raise TaskError if rendering the template could take a long time.

    Loops may only iterate over the questions, their labels or a literal list, and nothing may be multiplied.
    Otherwise a few nested loops over a range could run for days before the first unit is rendered.
    """
    for loop in tree.find_all(nodes.For):
        inner = list(loop.find_all(nodes.For))
        small = isinstance(loop.iter, nodes.Name | nodes.Getattr | nodes.Getitem | nodes.List | nodes.Tuple)
        if loop.recursive or not small or any(list(n.find_all(nodes.For)) for n in inner):
            raise TaskError(
                f"{where}: template, line {loop.lineno}: a loop may only iterate over the questions, their labels or a literal list, "
                "and loops may be nested at most two levels deep"
            )
    # A product such as "a" * 10**9 fills the memory in one step.
    for node in tree.find_all((nodes.Mul, nodes.Pow, nodes.Macro)):
        raise TaskError(f"{where}: template, line {node.lineno}: products, powers and macros are not allowed")
    for name in tree.find_all(nodes.Name):
        # Jinja's own generators would make loops and texts of any length.
        if name.name in ("range", "lipsum"):
            raise TaskError(f"{where}: template, line {name.lineno}: '{name.name}' is not allowed in prompts")


def _refuse_unfencing(tree: nodes.Template, inputs: set[str], where: str) -> None:
    """Raise TaskError if the template could show an input without its fence.

    The template may only show an input unchanged, or test the input in a condition.
    """
    for block in tree.find_all(_BLOCKS):
        # Changed text is no longer marked as untrusted, so it would not be fenced.
        inside = {n.name for n in block.find_all(nodes.Name)}
        if used := sorted(inside & inputs):
            raise TaskError(
                f"{where}: template, line {block.lineno}: '{used[0]}' is in a block that may change it; "
                "filters, macros and assignments would remove it from its fence"
            )
    allowed: set[int] = set()
    for output in tree.find_all(nodes.Output):
        allowed |= {id(n) for n in output.nodes if isinstance(n, nodes.Name)}
    tests = [n.test for n in tree.find_all(nodes.If)] + [n.test for n in tree.find_all(nodes.CondExpr)]
    for test in tests:
        allowed |= {id(n) for n in _find_tested(test)}
    for name in tree.find_all(nodes.Name):
        if name.name in inputs and name.ctx == "load" and id(name) not in allowed:
            raise TaskError(
                f"{where}: template: '{name.name}' may only be shown as {{{{ {name.name} }}}} or tested "
                "in an {% if %}; filters, loops and assignments would remove it from its fence"
            )


def _find_tested(node: nodes.Node) -> list[nodes.Name]:
    if isinstance(node, nodes.Name):
        return [node]
    if isinstance(node, nodes.Not | nodes.Test):
        return _find_tested(node.node)
    if isinstance(node, nodes.And | nodes.Or):
        return _find_tested(node.left) + _find_tested(node.right)
    return []


def _try(task: Task, where: str) -> None:
    """Render the template with each combination of optional inputs.

    Raises TaskError if the template shows an input that is missing in one of the combinations.
    """
    # Imported here, because the renderer of raw tasks imports this module.
    from judge.prompts.raw import renderer_of

    renderer = renderer_of(task, Mode.TEXT if task.spec.raw else Mode.CODES if task.one_choice else Mode.JSON)
    optional = task.spec.optional_inputs
    # Every combination, because an {% if %} may show one optional input only together with another.
    for count in range(len(optional) + 1):
        for given in combinations(optional, count):
            names = [*task.required_inputs, *given]
            try:
                renderer.render({name: f"sample {name}" for name in names})
            except TaskError as e:
                raise TaskError(f"{e} (if only {', '.join(names)} are given)") from e
