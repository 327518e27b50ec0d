#!/bin/sh
# Makes the environments of the libraries that `python benchmarks/run.py` compares with:
#
#     sh benchmarks/environments.sh            all of them; about 5 GB
#     sh benchmarks/environments.sh pfl fedjax
#
# They come to .rivals/NAME. PYTHON says which Python to use. On Linux pip may fetch PyTorch's large
# CUDA build: point it to an index of CPU builds first. Running it again completes what is there.
set -eu
cd "$(dirname "$0")/.."
: "${PYTHON:=python3}"
: "${TORCH:=torch==2.13.0}"

make_environment() {  # NAME, then what pip is to install first without and then with dependencies
    folder=".rivals/$1" alone="$2"
    shift 2
    [ -x "$folder/bin/python" ] || "$PYTHON" -m venv "$folder"
    # Nothing may replace this PyTorch by another build of it.
    echo "$TORCH" > "$folder/constraints.txt"
    pip="$folder/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir"
    pip="$pip --constraint $folder/constraints.txt"
    case "$*" in *torch*) $pip "$TORCH" ;; esac
    [ -z "$alone" ] || $pip --no-deps "$alone"
    $pip "$@"
}

for name in "${@:-all}"; do
    case "$name" in all | pfl | flower | fedlab | fluke | fedjax) ;; *)
        echo "there is no environment $name; they are: pfl flower fedlab fluke fedjax" >&2
        exit 2 ;;
    esac
done
[ $# -gt 0 ] || set -- pfl flower fedlab fluke fedjax
for name; do
    echo "$name ..."
    case "$name" in
        pfl) make_environment pfl "" "$TORCH" pfl==0.6.0 ;;
        flower) make_environment flower "" "$TORCH" "flwr[simulation]==1.41.0" ;;
        # These two demand torchvision, which has no build for CPUs outside PyTorch's own index,
        # and fluke trackers: all of it for things that are not measured.
        fedlab) make_environment fedlab fedlab==1.3.0 "$TORCH" \
            numpy pandas scikit-learn pynvml tqdm munch pillow ;;
        fluke) make_environment fluke fluke-fl==0.8.1 "$TORCH" \
            numpy pandas scikit-learn torchmetrics rich diskcache cerberus omegaconf psutil \
            matplotlib seaborn ;;
        fedjax) make_environment fedjax "" fedjax==0.0.17 ;;
    esac
done
