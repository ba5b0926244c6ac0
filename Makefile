# SPDX-License-Identifier: GPL-2.0
# Front door of Weft: builds, proves, shows and installs it. `make help` lists every target.

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
J = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))

.DEFAULT_GOAL := help
.SUFFIXES:

# ---- kernel modules ---------------------------------------------------------------

.PHONY: modules kbuild-tree
modules: kbuild-tree
	+@flock $(KB)/.lock sh kernel/compat/probe $(KDIR) $(KB)
	+@flock $(KB)/.lock $(MAKE) $(J) -C $(KDIR) M=$(KB) W=$(W) WERROR=$(WERROR) \
		WEFT_VERSION=$(WEFT_VERSION) $(KBUILD_ARGS) modules
	@mkdir -p $(KO)
	@for ko in $(KB)/*.ko; do cmp -s $$ko $(KO)/$${ko##*/} || cp $$ko $(KO)/; done
	@echo "modules for $(KREL): $(KO)"

# 6.1's kbuild has no MO=, so the sources are mirrored as links; a link whose file is gone goes.
kbuild-tree:
	@test -n "$(KREL)" || { echo "no kernel headers at '$(KDIR)': run make setup, or give KDIR=" >&2; exit 1; }
	@mkdir -p $(KB)/kernel/include/uapi $(KB)/kernel/compat
	@flock $(KB)/.lock sh -c 'find $(KB) -xtype l -delete; \
		cp -rsf $(CURDIR)/Kbuild $(CURDIR)/kernel $$(ls -d $(CURDIR)/drivers 2>/dev/null) $(KB)/'

.PHONY: help
help:
	@echo "make modules [KDIR=...]   build/modules/<release>/{weft_core,weft_ib}.ko"

.PHONY: clean
clean:
	rm -rf $(B)
