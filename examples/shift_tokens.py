"""Moving data about: rows looked up by token, padded, shifted by one position, and laid beside a prefix."""

import jax
import jax.numpy as jnp


def shift_tokens(table: jax.Array, tokens: jax.Array, prefix: jax.Array) -> jax.Array:
    """Return the embeddings of ``tokens`` beside those one step earlier, after ``prefix``.

    ``tokens`` outside the table read its nearest row, as JAX's clamped indexing does.
    """
    rows = table.at[tokens].get(mode="clip")
    padded = jnp.pad(rows, ((1, 0), (0, 0)))
    beside = jnp.concatenate([padded[1:], padded[:-1]], axis=1)
    return jnp.concatenate([prefix, beside], axis=0)


shift_tokens.example_args = (  # type: ignore[attr-defined]
    jax.ShapeDtypeStruct((5003, 256), jnp.float32),
    jax.ShapeDtypeStruct((1000,), jnp.int32),
    jax.ShapeDtypeStruct((24, 512), jnp.float32),
)
