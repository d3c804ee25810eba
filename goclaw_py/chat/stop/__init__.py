"""What /stop and /stopall do: who may stop what, here and on other nodes, and the answers.

Start at ``cancellation``, which ends runs and waiting messages; ``commands`` finds what a command
means, ``rights`` who may, ``answers`` what people read.
"""
