// SPDX-License-Identifier: Apache-2.0

// Package testnet reports to tests whether they have a network of their own.
package testnet

import (
	"net"
	"testing"
	"time"
)

// NeedLoopback skips the test where no program can reach another one on this
// machine over TCP, as in a container whose loopback interface is down.
func NeedLoopback(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("skipped: no loopback interface")
	}
	defer l.Close()
	c, err := net.DialTimeout("tcp", l.Addr().String(), 5*time.Second)
	if err != nil {
		t.Skipf("skipped: no loopback interface")
	}
	_ = c.Close()
}
