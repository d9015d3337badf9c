"""Sphinx extension: formulas as MathML, which browsers show by themselves, without a script from elsewhere."""

from __future__ import annotations

import html
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def inline(translator: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(_convert(node, as_block=False))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own."""
    translator.body.append(f'<div class="math">{_convert(node, as_block=True)}</div>')
    raise nodes.SkipNode


def _convert(node: nodes.math | nodes.math_block, *, as_block: bool) -> str:
    text = node.astext()
    try:
        return tex2mathml(text, as_block=as_block)
    except MathError as error:
        LOGGER.warning("formula %r: %s", text, error, location=node)
        return f"<code>{html.escape(text)}</code>"
