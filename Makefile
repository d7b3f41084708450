# make            everything in build/ (engine, dsa, module, tests)
# make demo       installs what is missing, builds, starts all of it on
#                 loopback and streams a chat (ONCE=1, PORT=, MODEL=)
# make test       installs what is missing, builds, runs what this machine can

BUILD    ?= build
CC       ?= cc
OPT      ?= -O2 -g
WARN      = -Wall -Wextra -Werror -Wpointer-arith -Wno-unused-parameter
CFLAGS    = -std=gnu11 $(OPT) $(WARN) -I. -D_GNU_SOURCE $(SAN)
LDFLAGS   = $(SAN)
LIBS      = -lyajl -lpcre2-8 -lopenblas -lcrypto -lxxhash -lhiredis -lm \
            -lpthread

# the ops run on any x86-64 or arm64; -O3 and no trapping lets them vectorise
KERNEL_OPT = -O3 -fno-math-errno -fno-trapping-math

BASE     := $(wildcard base/*.c)
CONTEXT  := $(wildcard context/*.c)
KERNELS  := $(wildcard kernels/*.c)
SCHEMA   := $(wildcard redis_schema/*.c)
ENGINE   := $(filter-out engine/main.c,$(wildcard engine/*.c))
TOOLS    := $(wildcard tools/*.c)
LIB_SRC  := $(BASE) $(CONTEXT) $(KERNELS) $(SCHEMA) $(ENGINE)
LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
TESTS    := $(patsubst t/unit/%.c,$(BUILD)/t/%,$(wildcard t/unit/test_*.c))

.PHONY: all
all: engine tools tests

.PHONY: engine tools tests
engine: $(if $(wildcard engine/main.c),$(BUILD)/dsa-engine)
tools: $(if $(TOOLS),$(BUILD)/dsa)
tests: $(TESTS)

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/obj/kernels/%.o: CFLAGS += $(KERNEL_OPT)

$(BUILD)/libdsa.a: $(LIB_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/dsa-engine: $(BUILD)/obj/engine/main.o $(BUILD)/libdsa.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/dsa: $(TOOLS:%.c=$(BUILD)/obj/%.o) $(BUILD)/libdsa.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/t/%: $(BUILD)/obj/t/unit/%.o $(BUILD)/libdsa.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) -lcmocka

-include $(shell test -d $(BUILD)/obj && find $(BUILD)/obj -name '*.d')
