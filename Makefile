# The two commands of the README are `make demo` and `make test`; they set up what they need (dev/setup).
#
#   make build                 a usable installation in build/prefix (release, link-time optimisation)
#   make demo                  mpi4py built with our mpicc, its own demos, and a picture denoised on 4 ranks
#   make test                  everything that CI tests
#   make test-long             what takes too long for every change: arm64 under emulation, all
#                              cases of NUMA machines, models
#   make check                 format, lint, layers, generated files: under a minute
#   make bench                 NearMPI beside its peers and the limits of this machine:
#                              bench/README.md (COMPARE=--short)
#   make fuzz                  a minute of each fuzzer (SECONDS_EACH=60)
#   make install PREFIX=DIR    copies the installation
#   make clean                 removes build/

PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
SECONDS_EACH ?= 60
COMPARE ?=
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
# Objects made with precompiled headers (cmake/Precompile.cmake) are kept, too.
export CCACHE_SLOPPINESS := pch_defines,time_macros

.PHONY: build demo test test-long check bench fuzz install clean

build:
	@mkdir -p build
	@dev/setup build
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(CURDIR)/build/prefix -DNEAR_TESTS=OFF >build/configure.log || (cat build/configure.log; exit 1)
	@cmake --build build/release -j $(JOBS)
	@cmake --install build/release >build/install.log || (cat build/install.log; exit 1)
	@echo "build: the installation is in build/prefix"

# Said before anything is fetched, in the shell's words: a bare system has no Python yet.
demo:
	@echo "demo: builds the library and mpi4py and runs nine programs. The first time this takes about 6 minutes on two"
	@echo "demo: cores, downloads up to 150 MB (compilers and libraries of the system, Python packages) and occupies 250 MB"
	@echo "demo: in build/. What is there already is used again; a repeated run takes half a minute."
	@$(MAKE) --no-print-directory build
	@dev/setup python mpi4py
	@python3 dev/demo.py

test: build
	@dev/setup build python test tools oracles mpi4py openmpi bench valgrind numa slurm pmix ssh
	@build/venv/bin/python dev/test.py

test-long: build
	@python3 dev/test.py --long

check:
	@dev/setup build python tools
	@build/venv/bin/python dev/check.py

bench: build
	@bench/compare --variants all --out bench/results $(COMPARE)

fuzz:
	@dev/setup build test
	@python3 dev/fuzz.py --seconds $(SECONDS_EACH)

install: build
	@cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build
