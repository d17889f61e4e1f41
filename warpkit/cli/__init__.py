"""The command line: `warpkit warp | resize | undistort | align | parity | identify |
compare | demo | attack | bench`.

`app` has the commands, `options` what they take, `errors` how they end. A command's own work lies
in a file or a folder of its name: `run` shows it on a terminal, `work` computes. `image_files` and
`image_kinds` read and write what Pillow can. Nothing else of the package imports this.
"""

from warpkit.cli.app import main as main
