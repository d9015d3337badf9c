"""Speed of klnumba against other libraries: ``python -m benchmarks`` measures, ``python -m benchmarks.report`` shows.

``cases`` says what is measured, ``ours`` and ``peers`` say by whom, ``timing`` says how, ``worker`` does it in one
process per number of threads, ``memory`` and ``first_use`` measure in fresh processes, ``report`` and ``plot``
read only the JSON.
"""
