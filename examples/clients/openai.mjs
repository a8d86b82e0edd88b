// Calls an endpoint with OpenAI's client (npm install openai): RUNYARD_URL, RUNYARD_API_KEY and the id of an endpoint.
//   node openai.mjs openainode echo 'Hello there'
import OpenAI from 'openai'

const { RUNYARD_URL = 'http://127.0.0.1:8080', RUNYARD_API_KEY } = process.env
const [endpoint, model, content = 'Hello'] = process.argv.slice(2)
const client = new OpenAI({ baseURL: `${RUNYARD_URL}/v2/${endpoint}/openai/v1`, apiKey: RUNYARD_API_KEY })

const messages = [{ role: 'user', content }]
const whole = await client.chat.completions.create({ model, messages })
console.log(whole.choices[0].message.content)

const stream = await client.chat.completions.create({ model, messages, stream: true })
for await (const event of stream) process.stdout.write(event.choices[0]?.delta?.content ?? '')
process.stdout.write('\n')
