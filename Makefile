# SPDX-License-Identifier: GPL-2.0
# Front door of Weft: builds it, proves it, shows it and installs it. `make help` lists every target.

WEFT_VERSION := 0.1.0

# Everything is written below $(B); the checkout itself stays clean.
B ?= $(CURDIR)/build

# Headers of the running kernel, else the newest that are installed.
DEB_ARCH := $(shell uname -m | sed 's/x86_64/amd64/;s/aarch64/arm64/')
ifeq ($(origin KDIR),undefined)
KDIR := $(firstword $(wildcard /lib/modules/$(shell uname -r)/build) \
	$(shell ls -d /lib/modules/*/build /usr/src/linux-headers-*-$(DEB_ARCH) 2>/dev/null | sort -rV))
endif
# Debian keeps the release of a headers directory in utsrelease.h only.
KREL := $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' \
	$(KDIR)/include/generated/utsrelease.h 2>/dev/null)
KB = $(B)/kbuild/$(KREL)
KO = $(B)/modules/$(KREL)

# Warnings are errors here; WERROR=0 lets an unknown compiler's new warnings pass.
WERROR ?= 1
W ?= 1
JOBS ?= $(shell nproc)
# A parent make that shares its job slots decides; else all CPUs.
J = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))

PREFIX ?= /usr/local
SUDO_HINT = { echo "weft: $(DESTDIR)$(PREFIX) is not writable: run this as root, or give DESTDIR= or PREFIX=" >&2; exit 1; }

.DEFAULT_GOAL := help
.SUFFIXES:

.PHONY: help
help:
	@sed -n 's/^## \{0,1\}//p' Makefile

## Weft, a RoCEv2 NIC in software. The two commands:
##   make demo          RDMA between two hosts on a Weft device, in a VM (installs what is missing)
##   make check         the proof, at most 15 minutes: host tests, VM suite on Debian's 6.1
##
## Build
##   make setup         install missing Debian packages (root or sudo)
##   make modules       weft_core.ko, weft_ib.ko in build/modules/RELEASE; KDIR=HEADERS, WERROR=0
##   make userspace     libweft, weft, examples in build/userspace
##   make clean         remove build/
##
## Use
##   make install       modules (updates/), tools, man pages; PREFIX=/usr/local, DESTDIR=
##   make uninstall     remove them again
##   make demo          as above, under 5 minutes after set-up
##   make shell         a prompt in a VM with the modules loaded
##
## Prove
##   make host-check    host tests alone: unit, property, fuzz, under ASan and UBSan
##   make static        compiler, sparse, checkpatch, format, shell, symbol checks
##   make check         as above
##   make ci            what .ci/run does: check, debug kernel, 6.12, 7.3, static checks
##   make check-full    hours: the whole suite everywhere; writes Documentation/results.rst
##   make bench         instructions per message and byte, Weft beside rdma_rxe in one boot
##   make bench-baseline  the same, as what the next ones are measured by
##   make bench-full    an hour: loss, tails, timers, locks too; BENCH="PART…" for some of it
##   make bench-latest  the same, shown in Documentation/performance.rst
##   make mutate        break each file on purpose; shows which test notices. MUTATE="--host ID…"

# ---- build ------------------------------------------------------------------------

.PHONY: setup
setup:
	@tools/setup

# The probe must be done before kbuild starts.
.PHONY: modules kbuild-tree
modules: kbuild-tree
	@flock $(KB)/.lock sh kernel/compat/probe $(KDIR) $(KB)
	+@flock $(KB)/.lock $(MAKE) --no-print-directory $(J) -C $(KDIR) M=$(KB) W=$(W) \
		WERROR=$(WERROR) WEFT_VERSION=$(WEFT_VERSION) $(KBUILD_ARGS) modules
	@mkdir -p $(KO)
	@for ko in $(KB)/*.ko; do cmp -s $$ko $(KO)/$${ko##*/} || cp $$ko $(KO)/; done
	@echo "modules for $(KREL): $(KO)"

# 6.1's kbuild has no MO=, so the sources are mirrored as links; a link whose file is gone goes.
kbuild-tree:
	@test -n "$(KREL)" || { echo "weft: no kernel headers at '$(KDIR)': run make setup, or give KDIR=" >&2; exit 1; }
	@mkdir -p $(KB)/kernel/include/uapi $(KB)/kernel/compat
	@flock $(KB)/.lock sh -c 'find $(KB) -xtype l -delete; \
		cp -rsf $(CURDIR)/Kbuild $(CURDIR)/kernel $(CURDIR)/drivers $(KB)/'

# Configured anew each time, in a blink, since a part may have come or gone.
configure = mkdir -p $(1) && flock $(1) cmake -S userspace -B $(1) -G Ninja $(2) \
	>$(1)/configure.log 2>&1 || { cat $(1)/configure.log >&2; exit 1; }

.PHONY: userspace
userspace:
	@$(call configure,$(B)/userspace,-DCMAKE_INSTALL_PREFIX=$(PREFIX))
	@flock $(B)/userspace cmake --build $(B)/userspace -j $(JOBS)

# The same sources for tests: clang for libFuzzer and both sanitizers.
.PHONY: host-build
host-build:
	@$(call configure,$(B)/host,-DCMAKE_BUILD_TYPE=Debug -DWEFT_SANITIZE=ON -DWEFT_TESTS=ON \
		-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++)
	@flock $(B)/host cmake --build $(B)/host -j $(JOBS)

.PHONY: clean
clean:
	rm -rf $(B)

# ---- prove ------------------------------------------------------------------------

.PHONY: host-check static check ci check-full mutate
host-check: setup
	@selftests/run host
static: setup
	@selftests/run static
check: setup
	@selftests/run check
ci:
	@bash .ci/run
check-full: setup
	@selftests/run --table Documentation/results.rst full
mutate: setup
	@tools/check/mutate $(MUTATE)

# ---- use --------------------------------------------------------------------------

.PHONY: demo shell bench bench-baseline bench-full bench-latest
# The VM's kernel, not this machine's; asked for after set-up, which the runner may need.
demo shell bench bench-baseline bench-full bench-latest: setup
	@kdir=$$(tools/weft-vm kernel kdir 6.1) && \
		$(MAKE) --no-print-directory modules userspace KDIR="$$kdir"
	@tools/$(or $(tool-$@),weft-vm shell)
tool-demo = demo/run
tool-bench = bench/icount
tool-bench-baseline = bench/icount --write
tool-bench-full = bench/full $(BENCH)
tool-bench-latest = bench/full --write $(BENCH)

MODDIR = $(DESTDIR)/lib/modules/$(KREL)/updates
MANIFEST = $(DESTDIR)$(PREFIX)/share/weft/manifest
MANPAGES = $(wildcard Documentation/man/*.[1-9])

# Packaging (DESTDIR set) leaves depmod to the package's scripts.
.PHONY: install uninstall
install: modules userspace
	@mkdir -p $(DESTDIR)$(PREFIX) 2>/dev/null && test -w $(DESTDIR)$(PREFIX) || $(SUDO_HINT)
	install -d $(MODDIR)
	install -m 644 $(KO)/*.ko $(MODDIR)
	DESTDIR=$(DESTDIR) cmake --install $(B)/userspace --prefix $(PREFIX) >$(B)/userspace/install.log
	install -D -m 644 $(B)/userspace/install_manifest.txt $(MANIFEST)
	for page in $(MANPAGES); do \
		install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man$${page##*.} $$page || exit; done
	$(if $(DESTDIR),,depmod $(KREL))

uninstall:
	rm -f $(MODDIR)/weft_*.ko
	if [ -f $(MANIFEST) ]; then \
		sed 's,^,$(DESTDIR),' $(MANIFEST) | xargs -r -d '\n' rm -f; rm -rf $(dir $(MANIFEST)); fi
	for page in $(MANPAGES); do rm -f $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/}; done
	$(if $(DESTDIR),,depmod $(KREL))
