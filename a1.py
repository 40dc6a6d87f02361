import jax, jax.numpy as jnp, xgpu, traceback, time
from xgpu.runtime.compare import compare
def t(name, fn, *types, show=False, run=True):
    t0=time.time()
    try:
        c = xgpu.compile(fn, *types)
        if show: print(c.ir("fusions"))
        if run:
            i = c.random_inputs(0)
            print(name, compare(c.run(*i), c.reference(*i)), round(time.time()-t0,1), flush=True)
        else: print(name, 'ok', round(time.time()-t0,1), flush=True)
        import re
        print('   ', re.findall(r'xgpu.emitter = "(\w+)"', c.ir("fusions")))
    except BaseException as e:
        print(name, 'FAIL', type(e).__name__, str(e)[:600], round(time.time()-t0,1)); 
        tb=traceback.extract_tb(e.__traceback__)
        print('   ', [(f.filename.split('/')[-1], f.lineno, f.name) for f in tb[-4:]], flush=True)
def sm(x): return jax.nn.softmax(x)
t('softmax', sm, 'f32[8,256]')
def f(x,a):
    m = x.max(1); s = jnp.exp(x-m[:,None]).sum(1)
    w = jnp.sort(jnp.exp(a))
    return s + w
t('sort epilogue', f, 'f32[64,256]','f32[64]', show=True)
def f2(x):
    m = x.max(1); s = jnp.exp(x-m[:,None]).sum(1)
    return s + jnp.roll(m, 3)
t('roll epilogue', f2, 'f32[64,256]')
def f3(x,a,b):
    m = x.max(1); s = jnp.exp(x-m[:,None]).sum(1)
    w = jnp.exp(a)@b
    return s + w
t('dot epilogue', f3, 'f32[64,256]','f32[64,2048]','f32[2048]')
def f4(x):
    m = x.max(2); s = jnp.exp(x-m[:,:,None]).sum(2)
    c = jnp.exp(x).sum((0,1)).sum()
    v = (m + c).T
    return s + v
t('transpose epilogue', f4, 'f32[16,16,256]')
