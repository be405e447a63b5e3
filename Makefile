# SPDX-License-Identifier: Apache-2.0
# The work is done by mage, which Go fetches by itself: "go tool mage -l" lists more.
MAGE := go tool mage
PREFIX ?= /usr/local

.PHONY: build kernel verify test bench install clean

build kernel verify test bench clean:
	$(MAGE) $@

install:
	$(MAGE) install -prefix=$(PREFIX)
