import os

import uvicorn
from fastapi import FastAPI

app = FastAPI()


@app.get("/ping")
def ping():
    return {"status": "healthy"}


@app.get("/")
def hello(name: str = "you"):
    return {"message": f"Hello, {name}!"}


if __name__ == "__main__":
    # In a process only Runyard reaches it; in a container it listens at all addresses, as the Dockerfile says.
    host = os.environ.get("HOST", "127.0.0.1")
    uvicorn.run(app, host=host, port=int(os.environ.get("PORT", "8000")))
