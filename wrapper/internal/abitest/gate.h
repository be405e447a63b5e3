/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARSEK_ABITEST_GATE_H_
#define SPARSEK_ABITEST_GATE_H_

#include "driver.h"

/* Holds streams up: what is put into them behind gate_hold runs when the gate is opened. There is one gate. It is
 * opened after `seconds` by itself, so that whoever waits for such a stream is found out and not waited for for ever.
 */
int gate_close(int seconds); /* as pthread_create */
int gate_hold(const driver* cuda, void* stream);
int gate_timed_out(void);
int gate_open(void); /* as pthread_join */

#endif
