"""Read YAML from a stranger: plain data only, and nothing that takes much time or memory."""

from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """A YAML loader that rejects tags, duplicate keys and aliases.

    PyYAML would silently drop the first value of a duplicate key. A few nested aliases stand for billions of values.
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "tag", None) is not None:
            problem = f"the tag '{event.tag}' is not allowed; write the value without it"
            raise yaml.constructor.ConstructorError(None, None, problem, event.start_mark)
        if self.check_event(yaml.AliasEvent):
            problem = f"the alias '*{event.anchor}' is not allowed; write the value again"
            raise yaml.constructor.ConstructorError(None, None, problem, event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key in (k for k, _ in node.value if isinstance(k, yaml.ScalarNode)):
            if key.value in seen:
                problem = f"the key '{key.value}' occurs twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def load_yaml(text: str) -> Any:
    """Return the document as dictionaries, lists, texts and numbers. The caller limits the length of the text.

    Raises yaml.YAMLError if the text is not valid YAML, has a tag, an alias or a duplicate key, or is nested too
    deeply.
    """
    try:
        return yaml.load(text, _Loader)
    except RecursionError as e:
        raise yaml.YAMLError("nested too deeply") from e
    except ValueError as e:
        # For example, a whole number of more than 4,300 digits, or the 99th of a month.
        raise yaml.YAMLError(f"a value cannot be read: {e}") from e
