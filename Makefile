# make            everything in build/: ngx_http_dsa_module.so, dsa-engine, dsa,
#                 and dsa-cuda where there is nvcc
# make demo       installs what is missing, builds, starts all of it on
#                 loopback, chats and plans a trip (ONCE=1, PORT=, MODEL=,
#                 BACKEND=cuda)
# make test       installs what is missing, builds, runs what this machine can
# make test-gpu   what needs a GPU: the ops, golden outputs, serving on it
# make test-clients  frameworks and agents from npm, 500 MB, as people use them
# make asan       the same tests with everything under ASan and UBSan
# make tsan       the threads of the engine and of nginx under TSan
# make soak       random faults under load for SOAK_TIME seconds; SOAK_SEED
#                 repeats the choices of a run
# make fuzz       each fuzz target for FUZZ_TIME seconds
# make bench      the load clients, against nginx's proxy_pass (bench/README.md)
# make deb        packages for Debian in build/deb; "make deb-install" tries
#                 them in a Debian of their own, "make containers" the images of
#                 containers/ that have them
# make install    module, programs, units and examples (DESTDIR=, PREFIX=)

BUILD    ?= build
CC       ?= cc
OPT      ?= -O2 -g
SAN      ?=
WARN      = -Wall -Wextra -Werror -Wpointer-arith -Wno-unused-parameter
CFLAGS    = -std=gnu11 $(OPT) $(WARN) -I. -D_GNU_SOURCE $(SAN)
LDFLAGS   = $(SAN)
LIBS      = -lyajl -lpcre2-8 -lssl -lcrypto -lxxhash -lhiredis -lm -lpthread

# the ops run on any x86-64 or arm64; -O3 and no trapping lets them vectorize,
# and without contraction they have the same bits on all (kernels/core/simd.h)
KERNEL_OPT = -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off

NGINX_SRC  ?= /usr/share/nginx/src
PREFIX     ?= /usr
FUZZ_TIME  ?= 600
SOAK_TIME  ?= 1200
JOBS       ?= $(shell nproc)
DEPS        = t/lib/install-deps
PROVE       = prove -j4 --timer -It/lib -r t/

# the plan of GPU memory is made without a GPU and without CUDA

PLAN_SRC := engine/cuda/plan.c engine/cuda/sizes.c

# Where nvcc is found, and cuBLASLt with it, dsa-engine has "backend cuda", and
# dsa-cuda is dsa with the commands that use a GPU.  Nothing else needs NVIDIA's
# libraries.  nvcc itself reports where its toolkit is, because the one on the
# PATH may be a script or a link.

NVCC     ?= $(firstword $(wildcard $(shell command -v nvcc) \
            /usr/local/cuda/bin/nvcc))
ifneq ($(NVCC),)
CUDA     := $(abspath $(shell $(NVCC) --dryrun -c -x cu /dev/null 2>&1 \
            | sed -n 's/^\#$$ TOP=//p'))
endif

ifneq ($(wildcard $(CUDA)/include/cublasLt.h),)
NVFLAGS   = -gencode=arch=compute_90a,code=sm_90a -O3 -std=c++17 -I. \
            -lineinfo -Xcompiler -Wall
NCCL     := $(wildcard $(CUDA)/include/nccl.h /usr/include/nccl.h)
DSA_CUDA := $(BUILD)/dsa-cuda
GPU_TEST := $(patsubst t/gpu/%.c,$(BUILD)/t/%,$(wildcard t/gpu/test_*.c))
GPU_TEST += $(BUILD)/t/gpu_speculate
CUDA_NOTE = "== with CUDA; what needs a GPU is in \"make test-gpu\""

# what is linked before libdsa.a: these versions of the files that differ with
# CUDA come before those of the library

CUDA_PICK := $(patsubst %.c,$(BUILD)/cuda/%.o,engine/service/backends.c \
             engine/service/conf.c)
CUDA_OBJ := $(patsubst %.c,$(BUILD)/cuda/%.o,$(filter-out $(PLAN_SRC), \
            $(wildcard engine/cuda/*.c))) \
            $(patsubst %.cu,$(BUILD)/cuda/%.cu.o,$(wildcard kernels/*/*.cu))
CUDA_LINK := $(CUDA_PICK) $(BUILD)/libdsa-cuda.a
CUDA_LIBS = -L$(CUDA)/lib64 -lcublasLt -lcudart_static -ldl -lrt -lstdc++
TOOL_CUDA := $(patsubst %.c,$(BUILD)/cuda/%.o,tools/bench.c \
             tools/logits.c tools/logits_drafts.c \
             bench/gpu.c bench/kernels.c bench/bound.c bench/routing.c \
             bench/comm.c bench/comm_nccl.c \
             $(wildcard bench/bits*.c bench/engine*.c bench/hosts*.c \
             bench/node*.c bench/op_*.c))
else
CUDA_NOTE = "== no nvcc with cuBLASLt: the CUDA code is not built"
endif

LIB_SRC  := $(filter-out engine/service/main.c engine/cuda/%,$(wildcard \
            base/*.c context/*.c context/*/*.c grammar/*.c kernels/*/*.c \
            redis_schema/*.c engine/*.c engine/*/*.c)) $(PLAN_SRC)
LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
TOOL_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tools/*.c) \
            bench/cache.c bench/hosts.c bench/hosts_comm.c \
            bench/hosts_engine.c bench/routing.c bench/skew.c)
TESTS    := $(patsubst t/unit/%.c,$(BUILD)/t/%,$(wildcard t/unit/test_*.c)) \
            $(GPU_TEST)
FAKE     := $(BUILD)/t/fake_engine
HANG     := $(BUILD)/t/hang_engine
SAMPLE   := $(BUILD)/t/sample_grammar
SECCOMP  := $(BUILD)/t/seccomp
PRELOAD  := $(BUILD)/t/nginx_preload.so
BENCHES  := $(BUILD)/bench/load $(BUILD)/bench/source $(BUILD)/bench/cpu \
            $(BUILD)/bench/chat $(BUILD)/bench/prefix $(BUILD)/bench/replay \
            $(BUILD)/bench/grammar $(BUILD)/bench/limits \
            $(BUILD)/bench/stages $(BUILD)/bench/heavy $(BUILD)/bench/noise
MODULE_H := $(wildcard ngx_module/symbols.map \
            ngx_module/*/*.h base/*.h context/*.h context/*/*.h \
            redis_schema/*.h engine/link*.h)
MODULE_C := $(wildcard ngx_module/*.c ngx_module/*/*.c base/*.c \
            context/*.c context/*/*.c redis_schema/*.c)
CONSOLE  := $(wildcard console/embed console/*.html console/*.css \
            console/*.js)
CHECK_OBJ = $(patsubst %,$(BUILD)/obj/ngx_module/engine/ngx_http_dsa_%.o,\
            record_check hello_check wrong)
MODULE    = $(BUILD)/ngx_http_dsa_module.so
MODEL_DIR = $(BUILD)/model
GOLDEN   := $(basename $(wildcard t/data/golden/*.xz t/data/golden/*/*.xz))
WEIGHTS  := $(foreach m,a-fp8 b-bf16 moonlight v3 joyai glm-4.7-flash glm-5 \
            glm-5.2 drafts drafts-v3 drafts-joyai drafts-glm-4.7-flash \
            moonlight-wide v3-wide joyai-wide glm-4.7-flash-wide,\
            $(foreach n,1 2,\
            t/data/golden/$m/model-0000$n-of-00002.safetensors))


.PHONY: all module engine tools tests model golden
all: module engine tools tests $(BENCHES)

module: $(MODULE)
engine: $(BUILD)/dsa-engine
tools: $(BUILD)/dsa $(DSA_CUDA)
tests: $(TESTS) $(FAKE) $(HANG) $(SAMPLE) $(SECCOMP) $(PRELOAD)
model: $(MODEL_DIR)/config.json
golden: $(GOLDEN) $(WEIGHTS)


# the module: nginx's own configure with the flags of Debian's nginx, which
# nginx-dev has; a new file or a header that changes starts it from nothing

$(BUILD)/nginx/Makefile: config config.make Makefile $(MODULE_H) \
                         $(NGINX_SRC)/src/core/nginx.h \
                         base console context grammar redis_schema ngx_module \
                         $(wildcard ngx_module/*/. context/*/.)
	@rm -rf $(@D)
	@mkdir -p $(@D)
	( cd $(NGINX_SRC) && bash -uc '. ./conf_flags && exec ./configure \
	    --with-cc="$(CC)" \
	    --with-cc-opt="$(OPT) $(SAN) $(NGINX_CC_OPT) -Wall -Wextra -fPIC" \
	    --with-ld-opt="$(SAN) $(NGINX_LD_OPT) -fPIC" \
	    "$${NGX_CONF_FLAGS[@]}" --builddir=$(abspath $(@D)) \
	    --add-dynamic-module=$(CURDIR)' ) > $(BUILD)/configure.log \
	    || { tail -n 20 $(BUILD)/configure.log; rm -f $@; exit 1; }

NGINX_CC_OPT ?= -fstack-protector-strong -D_FORTIFY_SOURCE=2
NGINX_LD_OPT ?= -Wl,-z,relro -Wl,-z,now

# an nginx that runs has the old file mapped, and would crash if it were changed

$(MODULE): $(BUILD)/nginx/Makefile $(MODULE_C) $(CONSOLE)
	$(MAKE) -s -f $(abspath $<) -C $(NGINX_SRC) modules
	cp --remove-destination $(BUILD)/nginx/$(@F) $@

$(NGINX_SRC)/src/core/nginx.h:
	@echo "$@: no such file: install nginx-dev, or run \"make deps\"" >&2
	@exit 1


# objects stay for the next build
.SECONDARY:

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/obj/kernels/%.o: CFLAGS += $(KERNEL_OPT)

$(BUILD)/cuda/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -DDSA_CUDA=1 -isystem $(CUDA)/include -MMD -MP -c -o $@ $<

$(BUILD)/cuda/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

$(BUILD)/libdsa.a: $(LIB_OBJ)
$(BUILD)/libdsa-cuda.a: $(CUDA_OBJ)

$(BUILD)/%.a:
	@rm -f $@
	$(AR) qcs $@ $^

$(BUILD)/dsa-engine: $(BUILD)/obj/engine/service/main.o $(CUDA_LINK) \
                     $(BUILD)/libdsa.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) $(CUDA_LIBS)

ifneq ($(NCCL),)
$(BUILD)/cuda/bench/comm_nccl.o $(BUILD)/cuda/engine/cuda/nccl.o: \
    CFLAGS += -DDSA_NCCL=1
endif

$(BUILD)/dsa: $(TOOL_OBJ) $(BUILD)/libdsa.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/t/test_%: $(BUILD)/obj/t/unit/test_%.o $(CHECK_OBJ) \
                   $(BUILD)/libdsa.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) -lcmocka

$(BUILD)/t/test_draft_share: $(BUILD)/obj/t/unit/test_draft_share.o \
                             $(BUILD)/obj/bench/draft_share.o \
                             $(BUILD)/libdsa.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) -lcmocka

$(BUILD)/t/test_routing: $(BUILD)/obj/t/unit/test_routing.o \
                         $(BUILD)/obj/bench/routing.o $(BUILD)/libdsa.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) -lcmocka

$(BUILD)/t/test_bound: $(BUILD)/obj/t/unit/test_bound.o \
                       $(BUILD)/obj/bench/bound.o $(BUILD)/libdsa.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) -lcmocka

ifneq ($(DSA_CUDA),)
$(BUILD)/dsa-cuda: $(TOOL_CUDA) $(filter-out $(TOOL_CUDA:$(BUILD)/cuda/%=\
                   $(BUILD)/obj/%),$(TOOL_OBJ)) $(CUDA_LINK) $(BUILD)/libdsa.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) $(CUDA_LIBS)

$(BUILD)/t/test_conf: $(BUILD)/cuda/t/unit/test_conf.o $(CUDA_LINK) \
                      $(BUILD)/libdsa.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) $(CUDA_LIBS) -lcmocka

$(BUILD)/t/test_%: $(BUILD)/cuda/t/gpu/test_%.o $(BUILD)/cuda/t/gpu/gpu.o \
                   $(BUILD)/cuda/t/gpu/exchange.o $(CUDA_LINK) \
                   $(BUILD)/libdsa.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) $(CUDA_LIBS) -lcmocka

$(BUILD)/t/gpu_speculate: $(BUILD)/cuda/t/gpu/speculate.o $(CUDA_LINK) \
                         $(BUILD)/libdsa.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) $(CUDA_LIBS) -lcmocka

$(BUILD)/t/test_gpu_hang $(BUILD)/t/test_gpu_moves: \
    $(BUILD)/cuda/t/gpu/spin.cu.o
endif

$(BUILD)/t/test_gpu_hosts: LDFLAGS += -Wl,--wrap=cudaDeviceGetP2PAttribute
$(BUILD)/t/test_hosts $(BUILD)/t/test_same_bits $(BUILD)/t/test_speculate \
$(BUILD)/t/test_speculate_pages $(BUILD)/t/test_speculate_resumed: \
    LDFLAGS += -Wl,--wrap=dsa_threads_cpus
$(BUILD)/t/test_done: LDFLAGS += -Wl,--wrap=dsa_sched_create
$(BUILD)/t/test_unpack $(BUILD)/fuzz/fuzz_unpack: LIBS += -lz
$(BUILD)/fuzz/fuzz_hosts_lead $(BUILD)/t/test_hosts_leading: \
    LDFLAGS += -Wl,--wrap=dsa_hosts_connect
$(BUILD)/fuzz/fuzz_hosts_follow $(BUILD)/t/test_hosts_following: LDFLAGS += \
	-Wl,--wrap=dsa_hosts_memory_open,--wrap=dsa_host_open_part \
	-Wl,--wrap=dsa_host_close
$(BUILD)/t/test_json: LDFLAGS += -Wl,--wrap=yajl_parse
$(BUILD)/t/test_grammar_cache: LDFLAGS += -Wl,--wrap=dsa_grammar_compile
$(BUILD)/t/test_constrained: LDFLAGS += \
	-Wl,--wrap=dsa_states_token,--wrap=dsa_states_mask \
	-Wl,--wrap=dsa_states_quick
$(BUILD)/t/test_grammar_memory: LDFLAGS += \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc

$(HANG): $(BUILD)/obj/t/hang/hang_engine.o $(BUILD)/obj/engine/service/main.o \
         $(BUILD)/libdsa.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -Wl,--wrap=dsa_backend_null_open -o $@ $^ $(LIBS)

$(FAKE): $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard t/fake/*.c))
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^

$(SECCOMP): $(BUILD)/obj/t/sandbox/seccomp.o
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^

# without SAN, because it is preloaded before a sanitizer's library

$(PRELOAD): t/preload/nginx_preload.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(OPT) $(WARN) -D_GNU_SOURCE -shared -fPIC -o $@ $< \
	    -lyajl -lcrypto -ldl

$(SAMPLE): $(BUILD)/obj/t/ajv/sample_grammar.o $(BUILD)/libdsa.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/bench/load: $(BUILD)/obj/bench/observe.o $(BUILD)/obj/bench/http.o
$(BUILD)/bench/chat $(BUILD)/bench/replay: \
                     $(patsubst %.c,$(BUILD)/obj/%.o,bench/http.c \
                     bench/counts.c bench/draft_share.c bench/stream_times.c)
$(BUILD)/bench/replay: $(patsubst %.c,$(BUILD)/obj/%.o,\
                       $(wildcard bench/replay_*.c)) $(BUILD)/libdsa.a
$(BUILD)/bench/cpu: $(BUILD)/libdsa.a
$(BUILD)/bench/grammar: $(BUILD)/libdsa.a
$(BUILD)/bench/noise: $(BUILD)/libdsa.a
$(BUILD)/bench/prefix: $(BUILD)/libdsa.a
$(BUILD)/bench/stages: $(patsubst %.c,$(BUILD)/obj/%.o,\
                       $(wildcard bench/stages_*.c)) $(BUILD)/libdsa.a
$(BUILD)/bench/%: $(BUILD)/obj/bench/%.o
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/fuzz/fuzz_%: $(BUILD)/obj/t/fuzz/fuzz_%.o $(CHECK_OBJ) \
                      $(BUILD)/libdsa.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)

$(MODEL_DIR)/config.json: demo/make-model demo/make-tokenizer
	perl demo/make-model $(MODEL_DIR)

# Golden outputs are kept packed, and the weights that they were made from are
# drawn again; git sees neither.  Contraction would change their bits.

%.safetensors: %.safetensors.xz
	xz -dc $< > $@.tmp
	mv $@.tmp $@

$(WEIGHTS): $(wildcard t/golden/*.[ch]) t/data/golden/SHA256SUMS \
            | $(BUILD)/t/golden_weights
	$(BUILD)/t/golden_weights $(notdir $(@D)) \
	    $(patsubst model-0000%-of-00002.safetensors,%,$(@F)) > $@.tmp
	sed -n 's,$@$$,&.tmp,p' t/data/golden/SHA256SUMS | sha256sum -c --quiet
	mv $@.tmp $@

$(BUILD)/obj/t/golden/%.o: CFLAGS += -ffp-contract=off

$(BUILD)/t/golden_weights: $(BUILD)/obj/t/golden/weights.o \
                           $(BUILD)/obj/t/golden/randn.o
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lm


.PHONY: deps demo test test-clients test-gpu asan tsan soak fuzz fuzzers bench deb \
        deb-install containers cuda-toolkit install clean

deps:
	$(DEPS) build

demo:
	$(DEPS) build demo
	$(MAKE) -s -j$(JOBS) module engine
	BUILD=$(BUILD) demo/run

test:
	@echo "== packages"
	$(DEPS) build test
	@echo "== build"
	@echo $(CUDA_NOTE)
	$(MAKE) -j$(JOBS) all model golden
	@echo "== tests"
	DSA_BUILD=$(BUILD) $(PROVE)

test-clients:
	$(DEPS) build test
	$(MAKE) -j$(JOBS) all model
	DSA_BUILD=$(BUILD) DSA_CLIENTS=1 prove --timer -It/lib t/clients/

test-gpu:
	$(DEPS) build test
	$(MAKE) -j$(JOBS) all model golden
	DSA_BUILD=$(BUILD) DSA_GPU=1 prove --timer -It/lib t/gpu/
	DSA_BUILD=$(BUILD) DSA_GPU=1 DSA_BACKEND=cuda prove --timer -It/lib \
	    t/leave.t t/openai.t

asan:
	$(DEPS) build test asan
	t/lib/nginx-sanitized address $(BUILD)/nginx-asan
	$(MAKE) -j$(JOBS) NVCC= BUILD=$(BUILD)/asan OPT="-O1 -g -fno-omit-frame-pointer" \
	    SAN="-fsanitize=address,undefined -fno-sanitize-recover=undefined" \
	    NGINX_SRC=$(abspath $(BUILD)/nginx-asan/source) \
	    NGINX_CC_OPT="-DNGX_DEBUG_PALLOC=1" \
	    NGINX_LD_OPT="-Wl,-z,nodelete" all model golden
	DSA_BUILD=$(BUILD)/asan DSA_NGINX=$(abspath $(BUILD)/nginx-asan/nginx) \
	    DSA_SLOW=5 DSA_SANITIZED=1 $(PROVE)

# Fences order the rings between two processes, which TSan does not watch, so
# gcc's warning about fences is off.  The threads of the engine are ordered by
# mutexes and atomics alone, and those of nginx by its thread pool.

TSAN_TEST = engine engine_life threads journal link session thread_pool mask_thread \
            hosts_faults hosts_door hosts_pages \
            model model_bits redis redis_faults redis_cluster redis_random

tsan:
	$(DEPS) build test asan
	t/lib/nginx-sanitized thread $(BUILD)/nginx-tsan
	$(MAKE) -j$(JOBS) NVCC= BUILD=$(BUILD)/tsan \
	    OPT="-O1 -g -fno-omit-frame-pointer -Wno-tsan" \
	    SAN="-fsanitize=thread" \
	    NGINX_SRC=$(abspath $(BUILD)/nginx-tsan/source) \
	    NGINX_CC_OPT="-DNGX_DEBUG_PALLOC=1" \
	    NGINX_LD_OPT="-Wl,-z,nodelete" golden engine module \
	    $(BUILD)/tsan/t/hang_engine $(BUILD)/tsan/t/fake_engine \
	    $(BUILD)/tsan/t/nginx_preload.so \
	    $(TSAN_TEST:%=$(BUILD)/tsan/t/test_%)
	for t in $(TSAN_TEST); do \
	    DSA_SANITIZED=1 $(BUILD)/tsan/t/test_$$t || exit 1; done
	DSA_BUILD=$(BUILD)/tsan \
	    DSA_NGINX=$(abspath $(BUILD)/nginx-tsan/nginx) DSA_SLOW=5 \
	    DSA_SANITIZED=1 prove --timer -It/lib t/work.t t/work-hold.t

soak:
	$(DEPS) build test
	$(MAKE) -j$(JOBS) all model
	DSA_BUILD=$(BUILD) SOAK_TIME=$(SOAK_TIME) SOAK_SEED=$(SOAK_SEED) \
	    t/soak/run -v

fuzz:
	$(DEPS) build fuzz
	$(MAKE) -j$(JOBS) NVCC= BUILD=$(BUILD)/fuzz CC=clang-14 OPT="-O1 -g" \
	    golden fuzzers SAN=\
	"-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
	t/fuzz/run $(BUILD)/fuzz $(FUZZ_TIME)

fuzzers: $(patsubst t/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard t/fuzz/fuzz_*.c))

bench:
	$(DEPS) build demo
	$(MAKE) -j$(JOBS) module engine model $(BENCHES)
	DSA_BUILD=$(BUILD) bench/run -w

# The packages are built from the files that git knows, as they are now;
# nginx-dsa-engine-cuda is one of them where there is nvcc.

deb:
	$(DEPS) build deb
	rm -rf $(BUILD)/deb
	mkdir -p $(BUILD)/deb/nginx-dsa
	git ls-files -z | xargs -0 cp --parents -t $(BUILD)/deb/nginx-dsa
	sed -i "1s/(.*)/($$(debian/version))/" \
	    $(BUILD)/deb/nginx-dsa/debian/changelog
	cd $(BUILD)/deb/nginx-dsa && dpkg-buildpackage -b -us -uc -J$(JOBS) \
	    $(if $(DSA_CUDA),-Ppkg.nginx-dsa.cuda)
	rm -rf $(BUILD)/deb/nginx-dsa
	lintian --fail-on error $(BUILD)/deb/*.changes

# as root, after "make deb"

deb-install: model
	debian/test-install $(BUILD) $(CUDA)

# as root, after "make deb"

containers: model
	containers/test-run $(BUILD)

# for debian/rules

cuda-toolkit:
	@echo $(CUDA)

install: all
	install -D -t $(DESTDIR)$(PREFIX)/lib/nginx/modules $(MODULE)
	install -D -t $(DESTDIR)$(PREFIX)/sbin $(BUILD)/dsa-engine
	install -D -t $(DESTDIR)$(PREFIX)/bin $(BUILD)/dsa $(DSA_CUDA)
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib/systemd/system \
	    conf/systemd/*.service
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/nginx-dsa/examples \
	    conf/nginx.conf conf/nginx-front.conf conf/engine.conf \
	    conf/engine-v3.2-8gpu.conf conf/engine-v3.2-int4-*.conf \
	    conf/redis.conf conf/logrotate.d/dsa \
	    conf/prometheus/dsa.rules.yml
	install -D -m 644 conf/grafana/dsa.json \
	    $(DESTDIR)$(PREFIX)/share/doc/nginx-dsa/examples/grafana.json

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD)/obj $(BUILD)/cuda -name '*.d' 2> /dev/null)
