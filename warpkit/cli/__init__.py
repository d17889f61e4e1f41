"""The command line: `warpkit warp | resize | undistort | align | parity | identify |
compare | demo | attack | bench`.

`app` has the commands, `options` their options, and `errors` the exit statuses. A command's own
work is in a file or a folder of its name: `run` shows it on a terminal, and `work` computes.
`image_files` and `image_kinds` read and write everything that Pillow can. Nothing else in the
package imports this.
"""

from warpkit.cli.app import main as main
