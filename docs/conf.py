"""Sphinx settings. Tables that come from measurements or tests are written by _ext/generated_pages.py."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "klnumba"
author = "the klnumba developers"
copyright = "2026, the klnumba developers"
release = version = installed_version("klnumba")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "generated_pages",
]
source_suffix = {".rst": "restructuredtext"}
exclude_patterns = ["_build", "_data", "_generated"]

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
myst_enable_extensions = ["dollarmath"]

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "klnumba"
html_static_path = ["_static"]
html_css_files = ["klnumba.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_end": [],
}
html_sidebars = {"index": [], "tutorial": [], "tutorial_language_model": []}
