/**
 * The kernels of the small program that `runyard doctor --gpu` runs, as PTX, which the driver compiles for the card
 * at hand. Words have 32 bits.
 *
 * - `fill` writes `word[i] = low32(i * 0x9E3779B1) ^ seed`.
 * - `checksum` adds `word[i] * (2 * i + 1)` of all words to a number of 64 bits.
 * - `advance` takes one word so many steps along a sequence: `word = word * 1664525 + 1013904223`.
 */
export const KERNELS = `.version 6.0
.target sm_50
.address_size 64

.visible .entry fill(.param .u64 at, .param .u64 words, .param .u32 seed)
{
  .reg .pred %end;
  .reg .b32 %block, %width, %grid, %low, %seed, %word;
  .reg .b64 %at, %words, %i, %stride, %place;
  ld.param.u64 %at, [at];
  ld.param.u64 %words, [words];
  ld.param.u32 %seed, [seed];
  cvta.to.global.u64 %at, %at;
  mov.u32 %block, %ctaid.x;
  mov.u32 %width, %ntid.x;
  mov.u32 %grid, %nctaid.x;
  mov.u32 %low, %tid.x;
  mad.lo.u32 %low, %block, %width, %low;
  cvt.u64.u32 %i, %low;
  mul.wide.u32 %stride, %width, %grid;
FILL_NEXT:
  setp.ge.u64 %end, %i, %words;
  @%end bra FILL_END;
  cvt.u32.u64 %low, %i;
  mul.lo.u32 %word, %low, 0x9E3779B1;
  xor.b32 %word, %word, %seed;
  shl.b64 %place, %i, 2;
  add.u64 %place, %at, %place;
  st.global.u32 [%place], %word;
  add.u64 %i, %i, %stride;
  bra FILL_NEXT;
FILL_END:
  ret;
}

.visible .entry checksum(.param .u64 at, .param .u64 words, .param .u64 out)
{
  .reg .pred %end;
  .reg .b32 %block, %width, %grid, %low, %word;
  .reg .b64 %at, %words, %out, %i, %stride, %place, %wide, %weight, %sum;
  ld.param.u64 %at, [at];
  ld.param.u64 %words, [words];
  ld.param.u64 %out, [out];
  cvta.to.global.u64 %at, %at;
  cvta.to.global.u64 %out, %out;
  mov.u32 %block, %ctaid.x;
  mov.u32 %width, %ntid.x;
  mov.u32 %grid, %nctaid.x;
  mov.u32 %low, %tid.x;
  mad.lo.u32 %low, %block, %width, %low;
  cvt.u64.u32 %i, %low;
  mul.wide.u32 %stride, %width, %grid;
  mov.u64 %sum, 0;
SUM_NEXT:
  setp.ge.u64 %end, %i, %words;
  @%end bra SUM_END;
  shl.b64 %place, %i, 2;
  add.u64 %place, %at, %place;
  ld.global.u32 %word, [%place];
  cvt.u64.u32 %wide, %word;
  shl.b64 %weight, %i, 1;
  add.u64 %weight, %weight, 1;
  mad.lo.u64 %sum, %wide, %weight, %sum;
  add.u64 %i, %i, %stride;
  bra SUM_NEXT;
SUM_END:
  red.global.add.u64 [%out], %sum;
  ret;
}

.visible .entry advance(.param .u64 at, .param .u32 steps)
{
  .reg .pred %end;
  .reg .b32 %left, %word;
  .reg .b64 %at;
  ld.param.u64 %at, [at];
  ld.param.u32 %left, [steps];
  cvta.to.global.u64 %at, %at;
  ld.global.u32 %word, [%at];
STEP_NEXT:
  setp.eq.u32 %end, %left, 0;
  @%end bra STEP_END;
  mad.lo.u32 %word, %word, 1664525, 1013904223;
  sub.u32 %left, %left, 1;
  bra STEP_NEXT;
STEP_END:
  st.global.u32 [%at], %word;
  ret;
}
`
