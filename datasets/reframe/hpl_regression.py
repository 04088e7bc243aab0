"""Has HPL become slower on this system? A test for ReFrame.

    reframe -c hpl_regression.py -r -S HplRegression.dat=/path/HPL.dat -S HplRegression.earlier=/path/earlier.json

xhpl runs each N of HPL.dat; a file that lists one N seven times gives seven runs, enough for an interval. hpl-tune compare then compares the runs
with those of `earlier`: results that xhpl --json has written, an HPL.out, or the run folder of a session. The test fails if a residual
fails, or if the runs are slower by more than the tolerance. Without `earlier` it only runs; keep the file tonight.json of its stage
folder as the earlier runs of the next nights.
"""

import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, run_before, sanity_function, variable


@rfm.simple_test
class HplRegression(rfm.RunOnlyRegressionTest):
    descr = "HPL compared with earlier runs"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    sourcesdir = None
    keep_files = ["tonight.json", "compare.json"]

    dat = variable(str, value=os.path.abspath("HPL.dat"))
    earlier = variable(str, value="")
    tolerance = variable(str, value="1%")
    xhpl = variable(str, value="xhpl")
    hpl_tune = variable(str, value="hpl-tune")

    @run_before("run")
    def prepare(self):
        self.prerun_cmds = [f"cp '{self.dat}' HPL.dat"]
        self.executable = self.xhpl
        self.executable_opts = ["--json", "--blas", "builtin", ">", "tonight.json"]
        # Without earlier runs they are compared with themselves: that shows whether they have passed.
        earlier = self.earlier or "tonight.json"
        compare = f"'{self.hpl_tune}' compare '{earlier}' tonight.json --tolerance '{self.tolerance}'"
        self.postrun_cmds = [f"{compare}; echo \"compare ended with $?\"", f"{compare} --json > compare.json"]

    @sanity_function
    def passed_and_not_slower(self):
        ended = sn.extractsingle(r"^compare ended with (\d+)", self.stdout, 1, int)
        verdict = sn.extractsingle(r"^Verdict +(.*)", self.stdout, 1)
        return sn.assert_eq(ended, 0, msg=f"hpl-tune compare ended with {{0}}: {verdict}")

    @performance_function("GFLOP/s")
    def rate(self):
        return sn.extractsingle(r'(?s)"b": \{.*?"median_gflops": ([\d.e+-]+)', "compare.json", 1, float)

    @performance_function("1")
    def by_earlier(self):
        return sn.extractsingle(r'"(?:ratio|median)": ([\d.e+-]+)', "compare.json", 1, float)
