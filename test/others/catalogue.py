"""The programs: a row adds one (program.py says what its parts mean)."""

import discover
from catalogue_python import PYTHON_PROGRAMS
from program import Case, Program

CMAKE = 'cmake -S {source} -B build-here -DCMAKE_BUILD_TYPE=Release -DMPI_C_COMPILER="$PREFIX/bin/mpicc" -DMPI_CXX_COMPILER="$PREFIX/bin/mpicxx" ' \
        '-DMPIEXEC_EXECUTABLE="$PREFIX/bin/mpiexec" -DMPIEXEC_PREFLAGS=--oversubscribe'

LINE = r"^ +(\d+(?: +-?\d[-+.e\d]*){4,}) *$"  # of LAMMPS's output: a step, and its temperature, energies and pressure

PROGRAMS = [
    Program(
        "scotch", "scotch",  # PT-Scotch: partitions graphs; threads, nonblocking collectives, many small messages
        build=f"""
            sed -i 's/enable_language(C Fortran)/enable_language(C)/' CMakeLists.txt
            {CMAKE.format(source='.')} -DBUILD_LIBESMUMPS=OFF -DBUILD_LIBSCOTCHMETIS=OFF -DUSE_ZLIB=OFF -DUSE_BZ2=OFF -DUSE_LZMA=OFF
            make -C build-here -j$JOBS""",
        libraries=("bison", "flex", "m4", "libfl-dev", "libfl2"),
        cases=discover.ctests("build-here", "mpiexec|strat_par")),
    Program(
        "boost-mpi", "boost1.81",  # Boost.MPI: serialised objects, skeletons, communicators and topologies of C++
        build="""
            objects() {
                mkdir -p built/$1
                ls libs/$1/src/*.cpp | xargs -P$JOBS -I{} sh -c 'exec mpicxx -O1 -w -I$ROOT/usr/include -c {} -o built/'$1'/$(basename {} .cpp).o'
            }
            objects serialization
            objects mpi
            ar rcs built/libboost.a built/*/*.o
            for name in random_gather random_scatter cartesian_communicator; do cp libs/mpi/example/$name.cpp libs/mpi/test; done
            ls libs/mpi/test/*.cpp | grep -v debugger | xargs -P$JOBS -I{} sh -c \
                'exec mpicxx -O1 -w -I$ROOT/usr/include {} libs/mpi/test/debugger.cpp built/libboost.a -o built/$(basename {} .cpp)'""",
        libraries=("libboost1.81-dev",),  # the headers
        members=("*/libs/mpi/*", "*/libs/serialization/src/*"),
        cases=discover.boost_tests),
    Program(
        "lammps", "lammps",  # molecular dynamics: neighbour exchange, many small reductions, FFTs by pencils
        build="""
            cd src
            make yes-molecule yes-manybody yes-kspace yes-granular yes-rigid
            make -j$JOBS mpi CC=mpicxx LINK=mpicxx CCFLAGS='-O1 -w -std=c++11' LINKFLAGS=-O1 MPI_INC= MPI_LIB= FFT_INC= FFT_LIB= JPG_INC= JPG_LIB=""",
        members=("*/src/*", "*/bench/*", "*/lib/*", "*/python/*"),
        cases=[Case(name, f"sed 's/^run.*/thermo 10\\nrun 30/' in.{name} | $RUN ../src/lmp_mpi -log none", ranks=(1, 2, 3, 4), folder="bench",
                    agree=agree, tolerance=1e-4, says="Total wall time", seconds=150)
               for name, agree in (("lj", LINE), ("eam", LINE), ("chute", LINE), ("rhodo", r"^(\w+ += +[-\d].*)$"))]),
    Program(
        "gromacs", "gromacs",  # molecular dynamics: halos of domains, transposes, and ranks of their own for the long-range forces
        build=f"""
            tar -xf ../../apt/packages/gromacs_*.orig-regressiontests.tar.* --strip-components=1 --one-top-level=tests
            {CMAKE.format(source='.')} -DCMAKE_C_FLAGS_RELEASE=-O1 -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DGMX_MPI=ON -DGMX_THREAD_MPI=OFF \\
                -DGMX_FFT_LIBRARY=fftpack -DGMX_SIMD=None -DGMX_HWLOC=OFF -DGMX_GPU=OFF -DGMX_BUILD_HELP=OFF \\
                -DGMXAPI=OFF -DGMX_INSTALL_NBLIB_API=OFF -DBUILD_SHARED_LIBS=OFF
            make -C build-here -j$JOBS gmx""",
        cases=[Case(f"{group}{name}", f"PATH=$SOURCE/build-here/bin:$PATH perl gmxtest.pl -np $RANKS {option} -ntomp 1 -mpirun mpiexec {group}",
                    ranks=ranks, folder="tests", says=f"All \\d+ {group} tests PASSED", seconds=240)
               for group in ("complex", "freeenergy", "rotation")
               for name, option, ranks in (("", "", (2, 4, 8)), ("-pme", "-npme 2", (4, 6)))]),
    Program(
        "fftw", "fftw3",  # transposes: all-to-all with strided blocks
        build="""
            ./configure --enable-mpi --disable-fortran --disable-doc CC=gcc MPICC=mpicc CFLAGS=-O1
            make -j$JOBS""",
        cases=[Case("check", 'perl -w ../tests/check.pl -r -c=4 --mpi "$RUN $PWD/mpi-bench"', ranks=(1, 2, 3, 4), folder="mpi", seconds=300)]),
    Program(
        "hypre", "hypre",  # multigrid: sparse neighbour exchange, assumed partitions
        build="""
            cd src
            ./configure CC=mpicc CXX=mpicxx CFLAGS=-O1 CXXFLAGS=-O1 --disable-fortran --with-MPI
            make -j$JOBS
            make -j$JOBS test || make -C test ij struct sstruct""",
        cases=[Case(name, f'bash runtest.sh -mpi "$PREFIX/bin/mpiexec --oversubscribe -np" -rtol 1e-3 -atol 1e-3 TEST_{name}.sh && '
                          f'cat TEST_{name}.err && test ! -s TEST_{name}.err', ranks=(0,), folder="src/test", seconds=300)
               for name in ("ij/default", "ij/coarsening", "ij/interp", "ij/solvers", "struct/periodic", "struct/solvers", "sstruct/solvers")]),
    Program(
        "sundials", "sundials",  # integrators of differential equations: reductions
        build=f"""
            mkdir answers
            cp examples/*/parallel/*.out answers
            {CMAKE.format(source='.')} -DENABLE_MPI=ON -DEXAMPLES_ENABLE_CXX=OFF -DEXAMPLES_INSTALL=OFF -DBUILD_SHARED_LIBS=OFF \\
                -DSUNDIALS_TEST_DEVTESTS=ON -DSUNDIALS_TEST_ANSWER_DIR=$PWD/answers
            make -C build-here -j$JOBS""",
        cases=discover.ctests("build-here", "mpiexec")),
    Program(
        "hpcc", "hpcc",  # HPC Challenge: LU by its own broadcasts, transposes, random access, FFT, rings
        build="""
            cat >hpl/Make.x <<'END'
SHELL=/bin/sh
CD=cd
CP=cp
LN_S=ln -fs
MKDIR=mkdir
RM=/bin/rm -f
TOUCH=touch
TOPdir=../../..
INCdir=$(TOPdir)/include
BINdir=$(TOPdir)/bin/$(ARCH)
LIBdir=$(TOPdir)/lib/$(ARCH)
HPLlib=$(LIBdir)/libhpl.a
LAlib=$(LIBRARIES)/openblas-pthread/libopenblas.a -lpthread
HPL_INCLUDES=-I$(INCdir) -I$(INCdir)/$(ARCH)
HPL_LIBS=$(HPLlib) $(LAlib) -lm -ldl
HPL_DEFS=-DAdd_ -DF77_INTEGER=int -DStringSunStyle $(HPL_INCLUDES)
CC=mpicc
CCNOOPT=$(HPL_DEFS)
CCFLAGS=$(HPL_DEFS) -O2 -w
LINKER=mpicc
LINKFLAGS=$(CCFLAGS)
ARCHIVER=ar
ARFLAGS=r
RANLIB=echo
END
            make arch=x""",
        libraries=("libopenblas-pthread-dev",),
        cases=[Case("all", """mkdir -p run$RANKS && cd run$RANKS && rm -f hpccoutf.txt
                   sed "11s/^2/$(($RANKS / 2))/" ../_hpccinf.txt >hpccinf.txt &&
                   $RUN ../hpcc && cat hpccoutf.txt""", seconds=240, says=r"^Success=1", never="FAILED|ERROR")]),
    Program(
        "dune", "dune-common",  # the parallel part of a framework for finite elements: futures, packing, index sets
        build=f"""
            {CMAKE.format(source='.')} -DCMAKE_CXX_FLAGS="-O0 -w" -DCMAKE_DISABLE_FIND_PACKAGE_Python3=ON -DDUNE_ENABLE_PYTHONBINDINGS=OFF \\
                -DDUNE_BUILD_TESTS_ON_MAKE_ALL=ON -DDUNE_MAX_TEST_CORES=4
            make -C build-here/dune/common/parallel/test -j$JOBS""",
        cases=discover.ctests("build-here", "mpiexec.*/parallel/test/")),
    Program(
        "petsc", "petsc",  # solvers: star forests by messages, windows and shared memory, persistent and neighbourhood exchanges
        build="""
            ./configure PETSC_ARCH=here --with-cc=mpicc --with-cxx=0 --with-fc=0 --with-debugging=0 COPTFLAGS="-O1 -w" --with-x=0 \\
                --with-mpiexec="mpiexec --oversubscribe" --with-make-np=$JOBS --with-blaslapack-lib="-L$LIBRARIES/openblas-pthread -lopenblas"
            make all""",
        libraries=("libopenblas-pthread-dev", "libopenblas0-pthread", "libgfortran5", "libquadmath0"),
        variables={"PETSC_DIR": "$SOURCE", "PETSC_ARCH": "here", "LD_LIBRARY_PATH": "$LIBRARIES:$LIBRARIES/openblas-pthread"},
        cases=[Case(name, f"make -k -j$JOBS -f gmakefile.test test query=nsize queryval='*' searchin='{tests}' TIMEOUT=60", ranks=(0,), seconds=600,
                    says="^ ok ", never=r"^not ok (?!\S*mpiio).*")  # MPI_File is not there yet
               for name, tests in (("star-forests", "vec_is_sf*"), ("vectors", "vec_vec_tests*"), ("matrices", "mat_tests*"), ("grids", "dm_tests*"),
                                   ("meshes", "dm_impls_plex_tests*"), ("linear", "ksp_ksp_tests*"), ("nonlinear", "snes_tests*"))]),
    Program(
        "mpich", "mpich",  # the tests of another implementation
        build="""
            cd test/mpi
            ./configure CC=mpicc MPICC=mpicc CFLAGS="-O0 -g0 -w" --with-mpi=$PREFIX --disable-fortran --disable-cxx --disable-romio --disable-spawn
            for folder in util dtpools attr basic coll comm datatype errhan errors group info init mpi_t part pt2pt rma threads topo; do
                make -k -j$JOBS -C $folder || true
            done""",
        members=("*/test/mpi/*",),
        cases=discover.mpich_tests),
    *PYTHON_PROGRAMS,
]
