-- Run: what its jobs may see from now on, since somebody who may see less has given it code.
UPDATE tidewheel.run SET sees = :sees WHERE number = :run;
