/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "expect.h"

/* The arguments are checked first, so that all but the last call say what is wrong. */
void test_sms_hold(edge* e) {
  sparsek_sm_hold* hold = (sparsek_sm_hold*)e;
  int32_t expired = 7;
  EXPECT(NULL_POINTER, "out", sms_hold(e->context, 1, 1, NULL));
  EXPECT(NULL_POINTER, "context", sms_hold(NULL, 1, 1, &hold));
  ++e->checks;
  if (hold != NULL) fprintf(e->failures, "%s: a call that failed left a handle\n", EDGE_PLACE);
  EXPECT(BAD_SIZE, "count = 0", sms_hold(e->context, 0, 1, &hold));
  EXPECT(BAD_SIZE, "count = -1", sms_hold(e->context, -1, 1, &hold));
  EXPECT(BAD_ARGUMENT, "seconds = 0", sms_hold(e->context, 1, 0, &hold));
  EXPECT(BAD_ARGUMENT, "seconds = 60.5", sms_hold(e->context, 1, 60.5, &hold));
  EXPECT(BAD_ARGUMENT, "seconds", sms_hold(e->context, 1, NAN, &hold));
  EXPECT(NO_DEVICE, "no GPU", sms_hold(e->context, 1, 1, &hold));
  EXPECT(NULL_POINTER, "hold", sms_release(NULL, &expired));
  EXPECT(NULL_POINTER, "hold", sms_release(NULL, NULL));
}
