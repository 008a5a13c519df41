"""Programs of PyPI on mpi4py, which our mpicc builds first (sources.python)."""

from program import Case, Program

INSTALL = '"$PYTHON" -m pip install -q --disable-pip-version-check '
RUN = 'MPIEXEC="$PREFIX/bin/mpiexec --oversubscribe" NP=$RANKS PYTHON="$PYTHON"'


def demos():
    """mpi4py's demonstrations that need neither Fortran nor spawned processes."""
    scripts = [("compute-pi/cpi-cco", "echo 100 | $RUN $PYTHON cpi-cco.py"), ("compute-pi/cpi-rma", "echo 100 | $RUN $PYTHON cpi-rma.py"),
               ("check-mpiexec/run", f"{RUN} sh run.sh"), ("threads/sendrecv", "$RUN $PYTHON sendrecv.py"),
               ("mandelbrot/mandelbrot", "MPLBACKEND=agg $RUN $PYTHON mandelbrot.py")]
    scripts += [(f"nxtval/nxtval-{kind}", f"$RUN $PYTHON nxtval-{kind}.py") for kind in ("threads", "onesided", "scalable", "mpi3")]
    scripts += [(f"profiling/{kind}", f"$RUN $PYTHON {kind}.py") for kind in ("cpi", "ring", "threads")]
    scripts += [(f"{folder}/all", f"{RUN} sh {script}") for folder, script in
                (("init-fini", "run.sh"), ("mpi-ref-v1", "runtests.sh"))]
    scripts += [("reductions/all", "$RUN $PYTHON test_reductions.py -q"),
                ("futures/test_futures", "$RUN $PYTHON -m mpi4py.futures test_futures.py -q"),
                ("sequential/test_seq", "$RUN $PYTHON test_seq.py"), ("test-run/test_run", "$PYTHON test_run.py -v")]
    scripts += [(f"futures/run_{kind}", f"$RUN $PYTHON -m mpi4py.futures run_{kind}.py")
                for kind in ("cpi", "hello", "primes", "julia", "mandelbrot")]
    scripts += [("wrap-ctypes/test", "mpicc -shared -fPIC -o libhelloworld.so helloworld.c && $RUN $PYTHON test.py")]
    return [Case(name, f"cd {name.split('/')[0]} && {command}", ranks=(0,) if name.startswith("test-run") else (2, 4), folder="demo", seconds=150)
            for name, command in scripts]


PYTHON_PROGRAMS = [
    Program("mpi4py-demos", "pypi:mpi4py==4.1.2", build=":", cases=demos(), needs_python=True),
    Program(
        "schwimmbad", "pypi:schwimmbad==0.4.2", build=INSTALL + "dill pytest emcee==3.1.6 .", needs_python=True,
        cases=[Case("test_mpi", "$RUN $PYTHON tests/test_mpi.py"), Case("test_mpi_with_dill", "$RUN $PYTHON tests/test_mpi_with_dill.py"),
               Case("test_mpi_fail", "$RUN $PYTHON tests/test_mpi_fail.py", status=None, says="Derp"),
               Case("emcee", """$RUN $PYTHON -c '
import emcee, numpy, schwimmbad, sys
with schwimmbad.MPIPool() as pool:
    if not pool.is_master():
        pool.wait()
        sys.exit(0)
    numpy.random.seed(7)
    sampler = emcee.EnsembleSampler(16, 3, lambda x: -0.5 * numpy.sum(x**2), pool=None)
    from schwimmbad._test_helpers import _function
    walkers = numpy.random.randn(16, 1)
    sampler = emcee.EnsembleSampler(16, 1, _function, pool=pool)
    print("mean", sampler.run_mcmc(walkers, 100).coords.mean())'""", agree="^mean (.*)")]),
    Program(
        "mpipool", "pypi:mpipool==2.2.1", build=INSTALL + ".", needs_python=True,
        cases=[Case("map", """$RUN $PYTHON -c '
import math, mpipool
with mpipool.MPIExecutor() as pool:
    pool.workers_exit()
    print("sum", sum(pool.map(math.sqrt, range(500))))'""", agree="^sum (.*)")]),
    Program(
        "mpi-pytest", "pypi:mpi-pytest==2026.0", build=INSTALL + "pytest .", needs_python=True,
        cases=[Case("inside", "$RUN $PYTHON -m pytest -q -m 'parallel[3]' tests", ranks=(3,)),
               Case("forking", "$PYTHON -m pytest -q tests", ranks=(0,))]),
    Program(
        "pytest-mpi", "pypi:pytest-mpi==0.6", build=INSTALL + "pytest sybil .", needs_python=True,
        cases=[Case("tests", "$PYTHON -m pytest -q -p pytester --runpytest=subprocess tests", ranks=(0,), seconds=200)]),
    Program(
        "pytest-isolate-mpi", "pypi:pytest-isolate-mpi==0.4.1", build=INSTALL + "pytest .", needs_python=True,
        cases=[Case(name, f"$PYTHON -m pytest -q test_{name}.py", ranks=(0,), folder="tests", seconds=300)
               for name in ("examples", "mpi_module_teardown", "subsession")]),
    Program(
        "dask-mpi", "pypi:dask-mpi==2026.3.0", needs_python=True,
        build=INSTALL + 'pytest requests bokeh . && ln -s "$PREFIX/bin/mpirun" "$(dirname $PYTHON)"',  # its tests look for mpirun there
        cases=[Case(name, f"$PYTHON -m pytest -q dask_mpi/tests/test_{name}.py", ranks=(0,), seconds=300)
               for name in ("cli", "execute", "initialize")]),
    Program(
        "mpi4py-fft", "pypi:mpi4py-fft==2.0.6", build=INSTALL + """'numpy<2' 'cython<3' setuptools wheel pytest scipy
            "$PYTHON" -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps .""",
        variables={"FFTW_INCLUDE_DIR": "$ROOT/usr/include", "FFTW_LIBRARY_DIR": "$LIBRARIES", "LD_LIBRARY_PATH": "$LIBRARIES"},
        libraries=("libfftw3-dev", "libfftw3-double3", "libfftw3-single3", "libfftw3-long3"), needs_python=True,
        cases=[Case(name, f"$RUN $PYTHON tests/test_{name}.py", ranks=(2, 4), seconds=200)
               for name in ("mpifft", "pencil", "libfft", "fftw", "darray")]),
]
