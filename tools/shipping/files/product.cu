// The loops of examples/loops/matrix_product.te by hand: a thread sums the products of a row and a column.
extern "C" __global__ void product(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < SIZE; k++) sum += a[i * SIZE + k] * b[k * SIZE + j];
  c[i * SIZE + j] = sum;
}
