# SPDX-License-Identifier: Apache-2.0
# The work is done by mage, which Go fetches by itself: "go tool mage -l" lists more.
MAGE := go tool mage
PREFIX ?= /usr/local

.PHONY: build kernel verify test bench profile gate install clean

build verify test bench profile gate clean:
	$(MAGE) $@

# TMA=1: the hand-written TMA kernel alone, built and verified
kernel:
	$(MAGE) $@ $(if $(filter-out 0,$(TMA)),-tma)

install:
	$(MAGE) install -prefix=$(PREFIX)
