# The verbs of the project, over the presets of CMakePresets.json. `make help` lists them.
JOBS ?= $(shell nproc 2> /dev/null || echo 2)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
CPP_FILES = find src tests bench tools examples clients -name node_modules -prune -o \( -name '*.h' -o -name '*.cpp' \) -print
UNIT_TESTS = ctest -j $(JOBS) -R '^unit' --output-on-failure --no-tests=error --test-dir
# As many files at a time as there are cores: most of what a test does is to wait.
NODE_TESTS = node --test --test-concurrency=$(JOBS) --test-reporter=spec
E2E_INSTALLED = tests/e2e/node_modules/.package-lock.json
FLEET_INSTALLED = tests/fleet/node_modules/.package-lock.json
PAGE_INSTALLED = page/node_modules/.package-lock.json

.DEFAULT_GOAL := build
# Each verb is a sequence of steps, and ninja uses all cores by itself.
.NOTPARALLEL:
.PHONY: help setup build run test unit e2e fleet-test page page-test asan asan-binary tsan sanitized sanitized-e2e agents shapes promises hostile soak fuzz install deb release oci library install-library tidy lint fmt bench bench-tools models cuda backend test-models clean

help:             ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

setup:            ## install what the build needs and this machine lacks (Debian 12)
	@tools/setup.sh

build: build/build.ninja  ## build/bin/chasqui and the unit tests
	cmake --build build

run: setup build/build.ninja  ## set up, build and serve: make run [MODEL=file.gguf] [ARGS="--port 9000"]
	cmake --build build --target chasqui
	build/bin/chasqui serve $(if $(MODEL),-m '$(MODEL)') $(ARGS)

test: setup tidy unit e2e page-test  ## everything that a change must pass

# The tests want a model of each kind: with a window, recurrent, hybrid.
test-models: build
	cmake --build build --target test-models

unit: test-models ## unit tests
	$(UNIT_TESTS) build

e2e: test-models $(E2E_INSTALLED)  ## end-to-end tests: the real binary and real sockets; what the documentation says
	cd tests/e2e && $(NODE_TESTS)
	cd tests/docs && $(NODE_TESTS)

fleet-test: build $(FLEET_INSTALLED)  ## the proxies of deploy/ in front of real nodes; real object stores
	@tools/setup.sh --fleet
	cd tests/fleet && node --test --test-reporter=spec

page: $(PAGE_INSTALLED)  ## page/built, the page that the binary holds, of page/src
	cd page && node build.mjs

page-test: test-models $(PAGE_INSTALLED)  ## the page in a real Chromium, and whether page/built is of its sources
	@tools/setup.sh --browser
	cd page && $(NODE_TESTS) test/*.test.mjs

asan: build/asan/build.ninja  ## unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
	cmake --build build/asan --target all --target test-models
	$(UNIT_TESTS) build/asan

asan-binary: build/asan/build.ninja  ## the server and mkmodel under AddressSanitizer, build/asan/bin
	cmake --build build/asan --target chasqui mkmodel

# ThreadSanitizer of g++ 12 needs its shadow addresses free, which many random bits of mmap do not leave.
FEW_RANDOM_BITS = $$(setarch -R true 2> /dev/null && echo setarch -R)
tsan: build/tsan/build.ninja  ## unit tests under ThreadSanitizer
	$(FEW_RANDOM_BITS) cmake --build build/tsan --target all --target test-models
	TSAN_OPTIONS="suppressions=$(CURDIR)/tools/tsan.supp $$TSAN_OPTIONS" $(FEW_RANDOM_BITS) $(UNIT_TESTS) build/tsan

# What CI has time to build twice: what all threads share, and the simulations.
sanitized: build/asan/build.ninja build/tsan/build.ninja  ## the smaller part of both, which CI runs
	cmake --build build/asan --target test_base test_cache test_sched
	ctest -j $(JOBS) -R '^unit\.(base|cache|sched)$$' --output-on-failure --no-tests=error --test-dir build/asan
	$(FEW_RANDOM_BITS) cmake --build build/tsan --target test_base test_cache
	TSAN_OPTIONS="suppressions=$(CURDIR)/tools/tsan.supp $$TSAN_OPTIONS" $(FEW_RANDOM_BITS) \
	  ctest -j $(JOBS) -R '^unit\.(base|cache)$$' --output-on-failure --no-tests=error --test-dir build/tsan

E2E_SECONDS ?= 900
sanitized-e2e: asan-binary test-models $(E2E_INSTALLED)  ## a part of the end-to-end tests under ASan and UBSan, by turns
	tools/sanitized_e2e.py --seconds $(E2E_SECONDS) $(if $(PART),--part $(PART))

# Where the kernel lets a user make a network of its own, the agents have none but the server's.
agents: build     ## real coding agents, each through a loop of its tools: make agents [AGENT=codex]
	npm install --prefix build/agents --no-save --no-audit --no-fund $$(node tests/agents/packages.mjs)
	unshare --map-root-user --net sh -c 'ip link set lo up && exec node tests/agents/run.mjs $(AGENT)'

SHAPES ?= 10000
shapes: build/build.ninja  ## schemas and grammars by chance against their budgets: make shapes [SHAPES=10000 SEED=1]
	cmake --build build --target test_api
	CHASQUI_SHAPES=$(SHAPES) CHASQUI_SEED=$(SEED) build/bin/test_api --gtest_filter='Shapes.*'

# Only what the commands need: building all tests takes longer than running these.
promises: build/build.ninja $(E2E_INSTALLED)  ## check every promise of docs/promises.md, in a quarter of an hour at most
	@tools/setup.sh --checks
	cmake --build build --target chasqui test_cache test_engine test_api
	@tools/promises.py

EXCHANGES ?= 100000
SEED ?= 1
hostile: asan-binary $(E2E_INSTALLED)  ## hostile HTTP against that server: make hostile [EXCHANGES=100000 SEED=1]
	cd tests/e2e && CHASQUI_BIN='$(CURDIR)/build/asan/bin/chasqui' node hostile.mjs $(EXCHANGES) $(SEED)

MINUTES ?= 60
soak: build       ## mixed load with faults: make soak [MINUTES=60 SEED=1]
	@tools/soak.py --minutes $(MINUTES) --seed $(SEED)

PREFIX ?= /usr/local
install: build/build.ninja  ## the binary, manual pages, completions, a systemd unit: make install [PREFIX=$$HOME/.local]
	cmake --build build --target chasqui
	cmake --install build --strip --prefix '$(PREFIX)'

library: build/library/build.ninja  ## the engine for other programs, build/library/lib/libchasqui.so, tried from C and Python (docs/library.md)
	cmake --build build/library --target chasqui_shared
	tools/try_library.sh build/library

install-library: library  ## libchasqui.so and chasqui.h: make install-library [PREFIX=$$HOME/.local]
	cmake --install build/library --strip --prefix '$(PREFIX)' --component library

# Of a build for many machines; DEB_BUILD=build packs the one for this machine.
DEB_BUILD ?= build/portable
deb: $(DEB_BUILD)/build.ninja  ## a Debian package in build/deb, unpacked and tried
	cmake --build $(DEB_BUILD) --target chasqui
	rm -rf build/deb
	cd $(DEB_BUILD) && cpack -G DEB -B '$(CURDIR)/build/deb'
	tools/try_deb.sh build/deb/chasqui_*.deb

RELEASE_BUILD ?= build/portable
release: $(RELEASE_BUILD)/build.ninja  ## tarball, Debian package and checksums in build/release, unpacked and tried
	cmake --build $(RELEASE_BUILD) --target chasqui chasqui_portable
	rm -rf build/release
	tools/pack_tarball.sh $(RELEASE_BUILD) build/release
	tools/try_tarball.sh build/release/chasqui-*.tar.gz $(if $(filter %portable,$(RELEASE_BUILD)),any)
	$(MAKE) deb DEB_BUILD=$(RELEASE_BUILD)
	cp build/deb/chasqui_*.deb build/release/
	cd build/release && sha256sum chasqui[-_]* > SHA256SUMS && sha256sum --check --quiet SHA256SUMS

oci: release      ## … and an OCI image, made without a daemon, unpacked and tried
	tools/pack_oci.py build/release/chasqui-*.tar.gz build/release
	tools/try_oci.sh build/release/chasqui-*.oci.tar
	cd build/release && sha256sum chasqui[-_]* > SHA256SUMS && sha256sum --check --quiet SHA256SUMS

SECONDS ?= 60
fuzz:             ## fuzz whatever comes from outside: make fuzz [SECONDS=60]
	@tools/setup.sh --checks
	@tools/fuzz.py --seconds $(SECONDS)

tidy:             ## the rules of the house: layers, header owners, sizes, banned words
	@tools/tidy.py --self-test
	@tools/tidy.py
	@! command -v node > /dev/null || node --experimental-vm-modules --no-warnings tools/parse_scripts.mjs

lint: build/build.ninja  ## clang-tidy, and the coroutine expressions that g++ 12 miscompiles
	@tools/setup.sh --checks
	find src -name '*.cpp' ! -name '*_test.cpp' -print0 | xargs -0 -n 1 -P $(JOBS) clang-tidy-14 -p build --quiet --extra-arg=-Wno-unknown-warning-option
	grep -lr --include='*.cpp' co_await src | xargs -r -n 1 -P $(JOBS) tools/coawait_lint.py -p build

fmt:              ## format the C++ sources
	@tools/setup.sh --checks
	$(CPP_FILES) | xargs -r clang-format-14 -i

bench-tools: build/build.ninja  ## what to compare with: raw_decode (libllama alone), sampling_cost, grammar_cost, answer_cost, delivery_cost, counting_cost
	cmake --build build --target raw_decode sampling_cost grammar_cost answer_cost delivery_cost counting_cost counting_cost_without

BENCH ?=
bench: build/build.ninja  ## the suite, half an hour at most: make bench [BENCH=name,name LLAMA_SERVER=path ROUNDS=1]
	@tools/setup.sh --checks
	cmake --build build --target chasqui raw_decode delivery_cost models
	@bench/suite.py $(BENCH)

cuda: build/cuda/build.ninja  ## the server with libllama's CUDA backend, build/cuda/bin/chasqui (docs/cuda.md)
	cmake --build build/cuda --target chasqui

BACKEND ?= vulkan
backend: build/build.ninja  ## a backend of ggml that the server loads when it starts: make backend BACKEND=vulkan (docs/backends.md)
	cmake --build build --target 'backend_$(BACKEND)'

models: build/build.ninja  ## random-weight models of real shapes, into build/models
	cmake --build build --target models

clean:            ## remove the build folders (the built libllama stays in the cache)
	rm -rf build

# Once per folder: afterwards ninja re-runs CMake by itself when a CMake file or the list of sources changes.
build/build.ninja:
	cmake --preset release

build/%/build.ninja:
	cmake --preset $*

$(E2E_INSTALLED): tests/e2e/package-lock.json
	cd tests/e2e && npm ci --ignore-scripts --no-audit --no-fund
	@mkdir -p $(@D) && touch $@

$(FLEET_INSTALLED): tests/fleet/package-lock.json
	cd tests/fleet && npm ci --ignore-scripts --no-audit --no-fund
	@mkdir -p $(@D) && touch $@

$(PAGE_INSTALLED): page/package-lock.json
	cd page && npm ci --ignore-scripts --no-audit --no-fund
	@mkdir -p $(@D) && touch $@
