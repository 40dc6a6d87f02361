cd /work/main; export PYTHONPATH=$PWD/build/tree:$PWD PYTHONSAFEPATH=1 XGPU_CACHE=off
py() { timeout 240 nice -n 5 .venv/bin/python "$@"; }
