# SPDX-License-Identifier: MIT
"""Sites for ReFrame: this machine, and a Slurm cluster to fill in.

ReFrame takes the system whose `hostnames` match, or that of `--system`. What it writes on the way
goes below build/reframe, from where it is started; results gather where ladders.py says.
"""

import shutil
from pathlib import Path

WORK = Path("build/reframe")  # not resolved: ReFrame reads this in the folder of the file

site_configuration = {
    "systems": [
        {
            "name": "cluster",
            "descr": "A Slurm cluster: copy it, and change what is marked",
            "hostnames": ["^login"],  # CHANGE: of the nodes that you submit from
            "prefix": str(WORK),
            "modules_system": "nomod",  # CHANGE: lmod, tmod4, ... if the environment names modules
            "partitions": [
                {
                    "name": "gpu",
                    "descr": "Nodes with GPUs, one GPU a job",
                    "scheduler": "slurm",  # "squeue" where Slurm keeps no accounts (no sacct)
                    "launcher": "local",  # the program is one process on one node
                    "access": ["--partition=gpu"],  # CHANGE: and "--account=..." if needed
                    "environs": ["default"],
                    "features": ["gpu"],  # measured; without it, counted on an emulated GPU
                    "devices": [{"type": "gpu", "num_devices": 4}],  # CHANGE: of each node
                    "resources": [
                        {"name": "_rfm_gpu", "options": ["--gres=gpu:{num_gpus_per_node}"]}
                    ],
                    "max_jobs": 50,
                    # Figures may not be more than 3 % below what this GPU gave before:
                    # "extras": {"reference": "results/nvidia-h200", "tolerance": 0.03},
                },
                {
                    "name": "cpu",
                    "descr": "Nodes without",
                    "scheduler": "slurm",
                    "launcher": "local",
                    "access": ["--partition=cpu"],  # CHANGE
                    "environs": ["default"],
                    "max_jobs": 50,
                },
            ],
        },
        {
            "name": "local",
            "descr": "This machine",
            "hostnames": [".*"],
            "prefix": str(WORK),
            "partitions": [
                {
                    "name": "default",
                    "scheduler": "local",
                    "launcher": "local",
                    "environs": ["default"],
                    "features": ["gpu"] if shutil.which("nvidia-smi") else [],
                    "max_jobs": 1,  # one after the other, so that no job is in another's times
                }
            ],
        },
    ],
    "environments": [
        {
            "name": "default",
            # "modules": ["cuda/13.0", "cmake"],  # CHANGE: what brings nvcc, CMake and Ninja
            "cc": "cc",
            "cxx": "c++",
            "ftn": "",
        }
    ],
    "general": [
        {
            "report_file": str(WORK / "reports/run-{sessionid}.json"),
            "save_log_files": True,
        }
    ],
}
