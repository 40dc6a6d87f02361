"""Programs of blocks with several buffers, of kinds that no example has, as text."""

PROGRAMS: dict[str, str] = {
    "rank": """fn f(A: s32[3, 70], out R: s32[3, 70], inout S: s32[3, 70]) { par 3 b {
 new a: s32[70] #shared
 new k: s32[70] #shared
 par 70 i { a[i] = A[b, i] }
 par 70 i { new c: s32
   c = 0
   seq 70 j { c += select(a[j] < a[i], s32(1), s32(0))
     if j < i { c += select(a[j] == a[i], s32(1), s32(0)) } }
   k[i] = c
   R[b, i] = c
 }
 par 70 i { S[b, k[i]] = a[i] }
} }""",
    "mask": """fn f(A: f32[5, 66], out B: f32[5, 66]) { par 5 b {
 new m: pred[66] #shared
 new s: f32[66] #shared
 par 66 i { m[i] = A[b, i] > 0.0 }
 par 66 i { s[i] = select(m[65 - i], A[b, i], -A[b, i]) }
 par 66 i { B[b, i] = select(m[(i + 1) % 66], s[(i + 33) % 66], 7.0) }
} }""",
    "quant": """fn f(A: f32[4, 45], out Q: u8[4, 45], out D: f16[4, 45]) { par 4 b {
 new mx: f32[64] #shared
 new q: u8[45] #shared
 new d: f16[45] #shared
 par 64 i { mx[i] = 0.0 }
 par 45 i { mx[i] = abs(A[b, i]) }
 static 6 s { par (32 >> s) i { mx[i] max= mx[i + (32 >> s)] } }
 let m = mx[0]
 par 45 i { q[i] = u8(s32(abs(A[b, i]) / m * 200.0)) }
 par 45 i { d[i] = f16(q[44 - i]) * f16(0.5) }
 par 45 i { Q[b, i] = q[(i + 3) % 45] }
 par 45 i { D[b, i] = d[i / 3 * 3 + 2 - i % 3] }
} }""",
    "hists": """fn f(A: s32[3, 200], out H: s32[3, 16]) { par 3 b {
 new acc: s32[16] #shared
 par 16 i { acc[i] = 0 }
 seq 4 k {
   new x: s32[50] #shared
   new h: s32[16] #shared
   par 16 i { h[i] = 0 }
   par 50 i { x[i] = A[b, k * 50 + i] & 15 }
   par 50 i { h[x[49 - i]] += 1 #atomic }
   par 16 i { acc[15 - i] += h[15 - i] * (k + 1) }
 }
 par 16 i { H[b, i] = acc[i] }
} }""",
    "branches": """fn f(A: s32[4, 96], out B: s32[4, 96]) { par 4 b {
 new t: s32[96] #shared
 if b < 2 { new u: s32[96] #shared
   par 96 i { u[i] = A[b, i] * 2 }
   par 96 i { t[i] = u[95 - i] }
 } else { new v: s16[96] #shared
   par 96 i { v[i] = s16(A[b, i] % 1000) }
   par 96 i { t[i] = s32(v[(i + 5) % 96]) + 1 }
 }
 par 96 i { B[b, i / 8 * 8 + 7 - i % 8] = t[i / 8 * 8 + 7 - i % 8] }
} }""",
    "stages": """fn f(A: f32[2, 6, 32], out B: f32[2, 30]) { par 2 b {
 new acc: f32[30] #shared
 par 30 i { acc[i] = 0.0 }
 seq 6 k #stages(3) {
   new t: f32[32] #shared
   par 32 i { t[i] = A[b, k, i] }
   par 30 i { acc[i] += (t[i] + t[i + 2]) * f32(k) }
 }
 par 30 i { B[b, i] = acc[i] }
} }""",
    "stages_then": """fn f(A: s32[2, 5, 64], out B: s32[2, 64]) { par 2 b {
 new acc: s32[64] #shared
 par 64 i { acc[i] = 0 }
 seq 5 k #stages(2) {
   new t: s32[64] #shared
   par 64 i { t[i] = A[b, k, i] }
   par 64 i { acc[i] += t[63 - i] }
 }
 new z: s32[128] #shared
 par 64 i { z[i] = acc[i] }
 par 64 i { z[127 - i] = acc[(i + 1) % 64] }
 par 64 i { B[b, i] = z[i * 2] - z[i * 2 + 1] }
} }""",
    "warpscan": """fn f(A: s32[2, 128], out B: s32[2, 128]) { par 2 b {
 new t: s32[128] #shared
 new w: s32[4] #shared
 par 4 q { fully par 32 l {
   new s: s32
   s = A[b, q * 32 + l]
   static 5 k {
     let before = s
     asm("shfl.sync.up.b32 $0, $1, $2, 0, 0xffffffff;", before, u32(1 << k)) -> other: s32
     if l >= (1 << k) { s += other }
   }
   t[q * 32 + l] = s
   if l == 31 { w[q] = s }
 } }
 par 128 i { new c: s32
   c = 0
   seq 3 k { if i / 32 > k { c += w[k] } }
   B[b, i] = t[i] + c }
} }""",
    "complex": """fn f(A: c64[3, 40], out B: c64[3, 40]) { par 3 b {
 new t: c64[40] #shared
 new u: c64[40] #shared
 new v: c64[40] #shared
 par 40 i { t[i] = A[b, i] + A[b, 39 - i] }
 par 40 i { u[i] = t[(i + 9) % 40] - A[b, i] }
 par 40 i { v[i] = u[39 - i] }
 par 40 i { B[b, i] = v[(i + 1) % 40] }
} }""",
    "tpads": """fn f(A: s16[64, 64], out B: s32[64, 64]) { par 2 p { par 2 q {
 new x: s16[32, 32] #shared #pad(2)
 new y: s32[32, 32] #shared #pad(1)
 new z: u8[32, 32] #shared #pad(4)
 par 32 i { par 32 j { x[i, j] = A[p * 32 + i, q * 32 + j] } }
 par 32 i { par 32 j { y[i, j] = s32(x[j, i]) * 3 } }
 par 32 i { par 32 j { z[i, j] = u8(y[j, 31 - i]) } }
 par 32 i { par 32 j { B[q * 32 + j, p * 32 + i] = s32(z[j, i]) } }
} } }""",
    "scalars": """fn f(A: s32[3, 64], out B: s32[3, 64]) { par 3 b {
 new t: s32[64] #shared
 new s: s32
 s = 0
 par 64 i { t[i] = A[b, i] }
 seq 64 i { s += t[i] }
 new u: s32[64] #shared
 par 64 i { u[i] = t[63 - i] - s }
 s = u[5]
 new v: s32[64] #shared
 par 64 i { v[i] = u[i / 2 * 2 + 1 - i % 2] * s }
 par 64 i { B[b, i] = v[(i + 31) % 64] }
} }""",
    "life": """fn f(A: u8[2, 19, 23], out B: u8[2, 19, 23]) { par 2 b {
 new g: u8[2, 19, 23] #shared
 par 19 i { par 23 j { g[0, i, j] = A[b, i, j] } }
 seq 5 k { par 19 i { par 23 j {
   new n: u8
   n = 0
   static 3 y { static 3 x { n += g[k % 2, (i + 18 + y) % 19, (j + 22 + x) % 23] } }
   n = n - g[k % 2, i, j]
   g[(k + 1) % 2, i, j] = select(n == 3, u8(1), select(n == 2, g[k % 2, i, j], u8(0)))
 } } }
 par 19 i { par 23 j { B[b, i, j] = g[1, i, j] } }
} }""",
    "tails": """fn f(A: s32[2, 999], out B: s32[2, 999]) { par 2 b {
 new t: s32[999] #shared
 new u: s32[999] #shared
 par 999 i #threads(352) { t[i] = A[b, i] }
 par 999 i #threads(352) { u[i] = t[i / 3 * 3 + 2 - i % 3] }
 par 999 i #threads(352) { B[b, i] = u[i / 9 * 9 + 8 - i % 9] }
} }""",
    "tiny": """fn f(A: s32[7, 12], out B: s32[7, 12]) { par 7 b {
 new t: s32[12] #shared
 new u: s32[12] #shared
 new v: s32[12] #shared
 par 12 i { t[i] = A[b, i] }
 par 12 i { u[i] = t[11 - i] }
 par 12 i { v[i] = u[(i + 5) % 12] }
 par 12 i { B[b, i] = v[11 - i] }
} }""",
    "depths": """fn f(A: s32[2, 64], out B: s32[2, 64]) { par 2 b {
 new acc: s32[64] #shared
 par 64 i { acc[i] = 0 }
 seq 3 k {
   new t: s32[64] #shared
   par 64 i { t[i] = A[b, i] * (k + 1) }
   seq 2 l {
     new u: s32[64] #shared
     new v: s32[64] #shared
     par 64 i { u[i] = t[63 - i] + l }
     par 64 i { v[i] = u[(i + 7) % 64] }
     par 64 i { acc[63 - i] += v[63 - i] }
   }
 }
 par 64 i { B[b, i] = acc[i] }
} }""",
    "kernels": """fn f(A: s32[128], out B: s32[128]) {
 new s: s32[128]
 par 2 b { new t: s32[64] #shared
  par 64 i { t[i] = A[b * 64 + i] }
  par 64 i { s[b * 64 + i] = t[63 - i] } }
 par 2 b { new t: s32[64] #shared
  new u: s32[64] #shared
  par 64 i { t[i] = s[127 - b * 64 - i] }
  par 64 i { u[i] = t[63 - i] * 2 }
  par 64 i { B[b * 64 + i] = u[i / 16 * 16 + 15 - i % 16] } }
}""",
    "align": """fn f(A: s32[3, 4, 8], out B: s32[3, 4, 8]) { par 3 b {
 new t: s32[4, 8] #shared
 par 4 w { fully par 8 l #align(32) { t[w, l] = A[b, w, l] * 2 } }
 par 4 w { fully par 8 l #align(32) { B[b, w, l] = t[w, 7 - l] + t[w, (l + 1) % 8] } }
} }""",
    "held_and_shared": """fn f(A: f32[2, 48, 40], out B: f32[2, 48, 48]) { par 2 b {
 new s: f32[48, 48]
 par 48 i { par 48 j { s[i, j] = 0.0 } }
 seq 5 k {
  new x: f32[48, 8]
  new y: f32[8, 48]
  par 48 i { par 8 c { x[i, c] = A[b, i, k * 8 + c] } }
  par 8 c { par 48 i { y[c, i] = x[i, c] * 2.0 } }
  par 48 i { par 48 j { seq 8 c { s[i, j] += x[i, c] * y[c, j] } } }
 }
 new m: f32[48] #shared
 par 48 i { m[i] = 0.0
  seq 8 c { m[i] = max(m[i], A[b, i, c]) } }
 par 48 i { par 48 j { B[b, i, j] = s[i, j] + m[j] } }
} }""",
    "vector": """fn f(A: u8[2, 256], out B: u8[2, 256]) { par 2 b {
 new t: u8[256] #shared
 new u: u8[256] #shared
 new v: u8[256] #shared
 par 256 i #vector(4) { t[i] = A[b, i] + 1 }
 par 256 i #vector(2) { u[i] = t[i / 4 * 4 + 3 - i % 4] }
 par 256 i #vector(8) { v[255 - i] = u[i] }
 par 256 i #vector(16) { B[b, i] = v[i] }
} }""",
    "where_in_seq": """fn f(A: s32[3, 64], out B: s32[3, 64]) { par 3 b {
 new t: s32[64] #shared
 par 64 i { t[i] = A[b, i] }
 seq 6 k {
  if k % 2 == 0 { new u: s32[64] #shared
    par 64 i { u[i] = t[63 - i] }
    par 64 i { t[i] = u[i / 2 * 2 + 1 - i % 2] } }
  if b + k >= 4 { new v: s16[64] #shared
    par 64 i { v[i] = s16(t[(i + 1) % 64]) }
    par 64 i { t[i] = s32(v[i]) + k } }
 }
 par 64 i { B[b, i] = t[(i + 8) % 64] }
} }""",
    "unknown_index": """fn f(A: s32[2, 64], n: s32[64], out B: s32[2, 64]) { par 2 b {
 new t: s32[64] #shared
 new u: s32[64] #shared
 new v: s32[64] #shared
 par 64 i { t[i] = A[b, i] }
 par 64 i { u[n[i]] = t[63 - i] }
 par 64 i { v[i] = u[n[63 - i]] }
 par 64 i { B[b, i] = v[i / 2 * 2 + 1 - i % 2] }
} }""",
    "offsets": """fn f(A: s32[2, 64], out B: s32[2, 64]) { par 2 b {
 new t: s32[64] #offset(512)
 new u: s32[64] #offset(0)
 new v: s32[64] #shared
 new w: u8[64] #offset(512)
 par 64 i { t[i] = A[b, i] & 255 }
 par 64 i { u[i] = t[63 - i] }
 par 64 i { v[i] = u[63 - i] }
 par 64 i { w[i] = u8(v[63 - i]) }
 par 64 i { B[b, i] = s32(w[63 - i]) }
} }""",
    "jacobi": """fn f(A: s32[130], inout B: s32[130]) { par 1 b {
 new x: s32[130] #shared
 par 130 i { x[i] = A[i] }
 seq 4 k { new y: s32[130] #shared
   par 130 i { y[i] = x[i] }
   par 128 i { y[i + 1] = x[i] + x[i + 2] - x[i + 1] }
   par 130 i { x[129 - i] = y[129 - i] } }
 par 130 i { B[i] = x[i] }
} }""",
    "twostage": """fn f(A: s32[2, 8, 64], C: s32[8, 64], out B: s32[2, 64]) { par 2 b {
 new acc: s32[64]
 par 64 i { acc[i] = 0 }
 seq 8 k #stages(4) {
   new x: s32[64] #shared
   new y: s32[64] #shared
   par 64 i { x[i] = A[b, k, i] }
   par 64 i { y[i] = C[k, 63 - i] }
   new z: s32[64] #shared
   par 64 i { z[i] = x[i / 4 * 4 + 3 - i % 4] * y[(i + 9) % 64] }
   par 64 i { acc[i] += z[63 - i] }
 }
 par 64 i { B[b, i] = acc[i] }
} }""",
    "bf16s": """fn f(A: bf16[3, 50], out B: bf16[3, 50]) { par 3 b {
 new t: bf16[50] #shared
 new u: f32[50] #shared
 new v: bf16[50] #shared
 par 50 i { t[i] = A[b, i] + A[b, i] }
 par 50 i { u[i] = f32(t[49 - i]) * 1.5 }
 par 50 i { v[i] = bf16(u[i / 2 * 2 + 1 - i % 2]) }
 par 50 i { B[b, i] = v[(i + 25) % 50] }
} }""",
    "first_thread": """fn f(A: s32[2, 40], out B: s32[2, 40]) { par 2 b {
 new t: s32[40] #shared
 new c: s32[4] #shared
 c[0] = A[b, 3]
 c[1] = A[b, 4] + c[0]
 par 40 i { t[i] = A[b, i] + c[1] }
 c[0] = t[7]
 new u: s32[40] #shared
 par 40 i { u[i] = t[39 - i] * c[0] }
 c[2] = u[0] + u[39]
 par 40 i { B[b, i] = u[i] + c[2] }
} }""",
    "inplace": """fn f(inout A: s32[2, 96]) { par 2 b {
 new t: s32[96] #shared
 par 96 i { A[b, i] += 1 }
 par 96 i { t[i] = A[b, i / 32 * 32 + 31 - i % 32] }
 par 96 i { A[b, i] = t[95 - i] }
} }""",
    "static_buffers": """fn f(A: s32[2, 64], out B: s32[2, 64]) { par 2 b {
 new t: s32[64] #shared
 par 64 i { t[i] = A[b, i] }
 static 4 s { new u: s32[(64 >> s)] #shared
   par (64 >> s) i { u[i] = t[i] + t[(64 >> s) - 1 - i] }
   par (64 >> s) i { t[i] = u[i] - s } }
 par 64 i { B[b, i] = t[i] }
} }""",
}
